#include <string.h>

#include "base/arena.h"
#include "text/tokenizer_impl.h"

/* ---- added tokens ---- */

static enum status read_token(struct added_token *a, const struct part *item, struct err *e)
{
    const char *s;
    int64_t id = -1;
    enum status st = part_keys(item, "id content single_word lstrip rstrip normalized special", e);

    if (st == OK)
        st = part_count(item, "id", 0, MODEL_IDS_MAX - 1, &id, e);
    if (st == OK && id < 0)
        st = err_set(e, E_FILE, "%s: no key `id`", item->where);
    if (st == OK)
        st = part_need_text(item, "content", &s, &a->n, e);
    if (st == OK && a->n == 0)
        st = err_set(e, E_FILE, "%s: an empty content is not supported", item->where);
    if (st != OK)
        return st;
    a->content = mem_take(a->n + 1);
    memcpy(a->content, s, a->n);
    a->id = (uint32_t)id;
    if ((st = part_flag(item, "single_word", &a->single_word, e)) == OK &&
        (st = part_flag(item, "lstrip", &a->left, e)) == OK &&
        (st = part_flag(item, "rstrip", &a->right, e)) == OK &&
        (st = part_flag(item, "normalized", &a->normalised, e)) == OK)
        st = part_flag(item, "special", &a->special, e);
    return st;
}

/* The library numbers contents that the vocabulary lacks itself, whatever the file says. */
static enum status check_id(const struct tokenizer *t, const struct added_token *a, uint32_t next,
                            const struct part *item, struct err *e)
{
    int64_t known = strings_find(&t->model.names, a->content, a->n);

    if (known < 0)
        known = next;
    if (known != a->id)
        return err_set(
            e, E_FILE,
            "%s: `%.60s` has the id %u here, but the vocabulary and the tokens before it "
            "give it %lld; correct the file",
            item->where, a->content, a->id, (long long)known);
    return OK;
}

static void place_token(struct tokenizer *t, const struct added_token *a)
{
    if (a->id >= t->size) {
        uint32_t room = a->id + 1;

        t->by_id = mem_grow(t->by_id, t->size * sizeof *t->by_id, room * sizeof *t->by_id);
        t->size = room;
    }
    t->by_id[a->id] = a;
}

static enum status read_all(struct tokenizer *t, const struct part *top, size_t n, struct err *e)
{
    uint32_t next = t->model.names.count;
    struct strings seen = { 0 };
    enum status st = OK;

    for (size_t i = 0; i < n && st == OK; i++) {
        struct part item = part_item(top, "added_tokens", i);
        struct added_token *a = &t->added[t->nadded++];

        if ((st = read_token(a, &item, e)) != OK || (st = check_id(t, a, next, &item, e)) != OK)
            break;
        if (strings_add(&seen, a->content, a->n, (uint32_t)i)->value != i)
            st = err_set(e, E_FILE, "%s: `%.60s` is there twice", item.where, a->content);
        if (a->id >= next)
            next = a->id + 1;
        place_token(t, a);
    }
    strings_free(&seen);
    return st;
}

/* ---- what is searched for ---- */

static enum status normalise_contents(struct tokenizer *t, struct err *e)
{
    struct buffer form = { 0 }, spare = { 0 };
    struct pattern_scratch *s = pattern_scratch_open();
    enum status st = OK;

    for (int i = 0; i < t->nadded && st == OK; i++) {
        struct added_token *a = &t->added[i];

        if (!a->normalised)
            continue;
        st = normalise_run(&t->normaliser, s, a->content, a->n, 1, &form, &spare, e);
        if (st == OK && form.n == 0)
            st = err_set(e, E_FILE, "added_tokens[%d]: the normalizer leaves nothing of `%.60s`", i,
                         a->content);
        a->form_at = t->forms.n;
        a->form_n = form.n;
        buffer_add(&t->forms, form.at, form.n);
    }
    pattern_scratch_close(s);
    buffer_free(&form);
    buffer_free(&spare);
    return st;
}

static void begin(struct tokenizer *t, size_t n)
{
    t->size = t->model.size;
    t->by_id = mem_take((size_t)(t->size + 1) * sizeof *t->by_id);
    t->added = mem_take((n + 1) * sizeof *t->added);
}

static enum status build_finders(struct tokenizer *t, struct err *e)
{
    const struct added_token *twice = NULL;
    enum status st = OK;

    finder_begin(&t->raw, t->nadded);
    finder_begin(&t->normalised, t->nadded);
    if (st == OK)
        st = normalise_contents(t, e);
    for (int i = 0; i < t->nadded && st == OK; i++) {
        const struct added_token *a = &t->added[i];

        if (a->normalised)
            finder_add(&t->normalised, a, t->forms.at + a->form_at, a->form_n);
        else
            finder_add(&t->raw, a, a->content, a->n);
    }
    if (st == OK) {
        finder_end(&t->raw);
        twice = finder_end(&t->normalised);
    }
    if (twice)
        st = err_set(e, E_FILE, "added_tokens: the normalizer makes `%.60s` equal to another",
                     twice->content);
    return st;
}

enum status tokenizer_read_added(struct tokenizer *t, const struct part *top, struct err *e)
{
    size_t n = 0;
    enum status st = OK;

    if (json_object_get(top->o, "added_tokens"))
        st = part_array(top, "added_tokens", &n, e);
    begin(t, n);
    if (st == OK)
        st = read_all(t, top, n, e);
    return st == OK ? build_finders(t, e) : st;
}

/* One special token that the vocabulary lacks. */
enum status tokenizer_add_token(struct tokenizer *t, const char *content, uint32_t id,
                                struct err *e)
{
    struct added_token *a;

    begin(t, 1);
    a = &t->added[t->nadded++];
    a->n = strlen(content);
    a->content = mem_copy_text(content);
    a->id = id;
    a->special = 1;
    if (id < t->model.size)
        return err_set(e, E_FILE, "the file has %u ids; this encoding ends before %u",
                       t->model.size, id);
    place_token(t, a);
    return build_finders(t, e);
}

enum status tokenizer_mark_special(struct tokenizer *t, const uint32_t *ids, size_t n,
                                   struct err *e)
{
    begin(t, n);
    for (size_t i = 0; i < n; i++) {
        struct added_token *a = &t->added[t->nadded++];
        size_t length;
        const char *text = tokenizer_text(t, ids[i], &length);

        a->n = length;
        a->content = mem_copy_text(text);
        a->id = ids[i];
        a->special = 1;
    }
    for (int i = 0; i < t->nadded; i++)
        place_token(t, &t->added[i]);
    return build_finders(t, e);
}

/* ---- may long texts be cut? ---- */

static int model_is_cuttable(const struct model *m, const struct buffer *space)
{
    uint32_t c;

    if (m->ignore_merges || space->n != (size_t)unicode_at(space->at, &c) ||
        (m->bytes && space->n > 1))
        return 0;
    for (uint32_t a = 'A'; a <= 'z'; a++)
        if ((a <= 'Z' || a >= 'a') &&
            (model_joined(m, a, c) || (!m->bytes && (m->point_id[a] < 0 || m->point_id[c] < 0))))
            return 0;
    return 1;
}

/* A space between two ASCII letters: can the text be cut before it, and the parts be encoded one by
 * one, with the same ids? */
int tokenizer_is_cuttable(const struct tokenizer *t)
{
    struct buffer a = { 0 }, spare = { 0 };
    struct pattern_scratch *s = pattern_scratch_open();
    int begins, fine = !t->spm && normalise_cuttable(&t->normaliser) && !t->normalised.swallows;

    if (fine && normalise_run(&t->normaliser, s, " ", 1, 0, &a, &spare, NULL) != OK)
        fine = 0;
    fine = fine && a.n > 0;
    for (int i = 0; fine && i < t->normalised.n; i++)
        fine = !memchr(t->normalised.entry[i].text, a.at[0], t->normalised.entry[i].n);
    if (fine)
        fine = split_cuttable(&t->splitter, &a, &begins) &&
               (begins || model_is_cuttable(&t->model, &a));
    buffer_free(&a);
    buffer_free(&spare);
    pattern_scratch_close(s);
    return fine;
}
