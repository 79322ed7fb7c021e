#include <string.h>

#include "text/model.h"

static const char keys[] = "type dropout unk_token continuing_subword_prefix end_of_word_suffix "
                           "fuse_unk byte_fallback ignore_merges vocab merges cache_capacity";

static enum status read_vocab(struct model *m, const struct part *from, struct err *e)
{
    struct part vocab = part_member(from, "vocab");
    const char *name;
    json_t *id;
    enum status st = OK;

    if (!json_is_object(vocab.o))
        return err_set(e, E_FILE, "%s: must be an object", vocab.where);
    json_object_foreach((json_t *)vocab.o, name, id)
    {
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= MODEL_IDS_MAX)
            return err_set(e, E_FILE, "%s: the id of `%.60s` is no integer from 0 to %d",
                           vocab.where, name, MODEL_IDS_MAX - 1);
        st =
            model_add_name(m, name, strlen(name), (uint32_t)json_integer_value(id), vocab.where, e);
        if (st != OK)
            return st;
    }
    return OK;
}

/* "a b" or ["a", "b"]. */
static int pair_of(const json_t *o, const char *half[2], size_t n[2])
{
    if (json_is_string(o)) {
        const char *s = json_string_value(o);
        size_t length = json_string_length(o);
        const char *p = memchr(s, ' ', length);

        if (!p || memchr(p + 1, ' ', length - (size_t)(p + 1 - s)))
            return 0;
        half[0] = s;
        n[0] = (size_t)(p - s);
        half[1] = p + 1;
        n[1] = length - n[0] - 1;
    } else {
        if (!json_is_array(o) || json_array_size(o) != 2)
            return 0;
        for (size_t i = 0; i < 2; i++) {
            half[i] = json_string_value(json_array_get(o, i));
            n[i] = json_string_length(json_array_get(o, i));
        }
    }
    return half[0] && half[1] && n[0] && n[1];
}

static enum status read_merge(struct model *m, const json_t *o, size_t line, uint32_t rank,
                              struct buffer *whole, struct err *e)
{
    const char *half[2];
    size_t n[2];
    int64_t left, right, id;

    if (!pair_of(o, half, n))
        return err_set(e, E_FILE, "model.merges[%zu]: must be \"a b\" or [\"a\", \"b\"]", line);
    whole->n = 0;
    buffer_add(whole, half[0], n[0]);
    buffer_add(whole, half[1], n[1]);
    left = strings_find(&m->names, half[0], n[0]);
    right = strings_find(&m->names, half[1], n[1]);
    id = strings_find(&m->names, whole->at, whole->n);
    if (left < 0 || right < 0 || id < 0)
        return err_set(e, E_FILE, "model.merges[%zu]: `%.*s` is not in the vocabulary", line,
                       left < 0    ? (int)n[0]
                       : right < 0 ? (int)n[1]
                                   : (int)whole->n,
                       left < 0    ? half[0]
                       : right < 0 ? half[1]
                                   : whole->at);
    model_merge_add(m, (uint32_t)left, (uint32_t)right, rank, (uint32_t)id);
    return OK;
}

static enum status read_merges(struct model *m, const struct part *from, struct err *e)
{
    const json_t *all = json_object_get(from->o, "merges");
    struct buffer whole = { 0 };
    size_t n = 0;
    uint32_t rank = 0;
    enum status st = part_array(from, "merges", &n, e);

    if (st != OK)
        return st;
    model_merges_begin(m, n);
    for (size_t i = 0; i < n && st == OK; i++) {
        const json_t *o = json_array_get(all, i);

        if (json_is_string(o) && strncmp(json_string_value(o), "#version", 8) == 0)
            continue;
        st = read_merge(m, o, i, rank++, &whole, e);
    }
    buffer_free(&whole);
    return st;
}

/* Options that change the ids in a way that we lack. */
static enum status refuse_options(const struct part *from, struct err *e)
{
    static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *dropout = json_object_get(from->o, "dropout");
    const char *s;
    size_t n;

    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return err_set(e, E_FILE,
                       "%s.dropout: ids would be random; set it to null to encode with this file",
                       from->where);
    for (int i = 0; i < COUNT_OF(affixes); i++) {
        enum status st = part_text(from, affixes[i], &s, &n, e);

        if (st != OK)
            return st;
        if (n)
            return err_set(e, E_FILE, "%s.%s: `%.60s` is not supported", from->where, affixes[i],
                           s);
    }
    return OK;
}

static enum status read_flags(struct model *m, const struct part *from, struct err *e)
{
    const char *s;
    size_t n;
    enum status st = part_flag(from, "fuse_unk", &m->fuse_unk, e);

    if (st == OK)
        st = part_flag(from, "byte_fallback", &m->byte_fallback, e);
    if (st == OK)
        st = part_flag(from, "ignore_merges", &m->ignore_merges, e);
    if (st == OK)
        st = part_text(from, "unk_token", &s, &n, e);
    if (st != OK)
        return st;
    m->unk = s ? strings_find(&m->names, s, n) : -1;
    if (s && m->unk < 0)
        m->unk = -2;
    return OK;
}

enum status model_read(struct model *m, const struct part *from, int bytes, struct err *e)
{
    const char *type;
    size_t n;
    enum status st;

    if (!from->o)
        return err_set(e, E_FILE, "no key `model`: not a tokenizer.json");
    if ((st = part_text(from, "type", &type, &n, e)) != OK)
        return st;
    if (type && strcmp(type, "BPE") != 0)
        return part_refuse(from, type, "BPE", e);
    st = part_keys(from, keys, e);
    if (st == OK)
        st = refuse_options(from, e);
    if (st == OK)
        st = read_vocab(m, from, e);
    if (st == OK)
        st = read_merges(m, from, e);
    if (st == OK)
        st = read_flags(m, from, e);
    if (st == OK)
        model_index(m, bytes);
    return st;
}
