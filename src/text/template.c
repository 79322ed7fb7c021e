#include "text/template.h"

#include <string.h>

enum { IDS_MAX = 1 << 22 };

static enum status add_id(struct ids *to, const json_t *o, const struct part *from, struct err *e)
{
    if (!json_is_integer(o) || json_integer_value(o) < 0 || json_integer_value(o) >= IDS_MAX)
        return err_set(e, E_FILE, "%s: an id is no integer from 0 to %d", from->where, IDS_MAX - 1);
    ids_add(to, (uint32_t)json_integer_value(o));
    return OK;
}

static enum status special_ids(struct ids *to, const struct part *item, const struct part *tokens,
                               struct err *e)
{
    struct part token;
    const char *name;
    size_t n = 0;
    enum status st = part_need_text(item, "id", &name, &n, e);

    if (st != OK)
        return st;
    token = part_member(tokens, name);
    if (!token.o)
        return err_set(e, E_FILE, "%s: `%.60s` is not in special_tokens", item->where, name);
    if ((st = part_keys(&token, "id ids tokens", e)) == OK)
        st = part_array(&token, "ids", &n, e);
    for (size_t i = 0; st == OK && i < n; i++)
        st = add_id(to, json_array_get(json_object_get(token.o, "ids"), i), &token, e);
    return st;
}

static enum status read_items(struct ids *front, struct ids *back, const struct part *from,
                              struct err *e)
{
    struct part tokens = part_member(from, "special_tokens");
    size_t n = 0;
    int seen = 0;
    enum status st = part_array(from, "single", &n, e);

    for (size_t i = 0; st == OK && i < n; i++) {
        struct part item = part_item(from, "single", i);
        struct part special = part_member(&item, "SpecialToken");
        struct part text = part_member(&item, "Sequence");
        const char *id;
        size_t k;

        if (special.o) {
            st = special_ids(seen ? back : front, &special, &tokens, e);
        } else if ((st = part_need_text(&text, "id", &id, &k, e)) == OK) {
            if (strcmp(id, "A") != 0 || seen++)
                st = err_set(e, E_FILE, "%s: the text must be in it once, as A", item.where);
        }
    }
    if (st == OK && !seen)
        st = err_set(e, E_FILE, "%s.single: the text is not in it", from->where);
    return st;
}

static enum status read_template(struct template *t, const struct part *from, struct err *e)
{
    enum status st = part_keys(from, "type single pair special_tokens", e);

    return st == OK ? read_items(&t->front, &t->back, from, e) : st;
}

/* BertProcessing, RobertaProcessing: cls in front, sep behind. */
static enum status read_pair(struct template *t, const struct part *from, struct err *e)
{
    static const char *const names[] = { "cls", "sep" };
    enum status st = part_keys(from, "type cls sep trim_offsets add_prefix_space", e);

    for (int i = 0; st == OK && i < 2; i++) {
        size_t n = 0;

        if ((st = part_array(from, names[i], &n, e)) == OK)
            st = add_id(i ? &t->back : &t->front,
                        json_array_get(json_object_get(from->o, names[i]), 1), from, e);
    }
    return st;
}

/* Its offsets are places in the text; ids stay. */
static enum status read_byte_level(struct template *t, const struct part *from, struct err *e)
{
    (void)t;
    return part_keys(from, "type add_prefix_space trim_offsets use_regex", e);
}

/* The library gives what one template has put together to the next as a pair of texts. */
static enum status read_sequence(struct template *t, const struct part *from, struct err *e)
{
    size_t n = 0;
    enum status st = part_keys(from, "type processors", e);

    if (st == OK)
        st = part_array(from, "processors", &n, e);
    for (size_t i = 0; st == OK && i < n; i++) {
        struct part item = part_item(from, "processors", i);

        st = item.o ? template_read(t, &item, e) : err_set(e, E_FILE, "%s: null", item.where);
    }
    return st;
}

enum status template_read(struct template *t, const struct part *from, struct err *e)
{
    static const struct {
        const char *name;
        int adds; /* ids */
        enum status (*read)(struct template *t, const struct part *from, struct err *e);
    } rows[] = {
        { "TemplateProcessing", 1, read_template }, { "ByteLevel", 0, read_byte_level },
        { "Sequence", 0, read_sequence },           { "BertProcessing", 1, read_pair },
        { "RobertaProcessing", 1, read_pair },
    };
    const char *type;
    size_t n;
    enum status st;

    if (!from->o)
        return OK;
    if ((st = part_need_text(from, "type", &type, &n, e)) != OK)
        return st;
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(type, rows[i].name) == 0) {
            if (rows[i].adds && t->front.n + t->back.n)
                return err_set(e, E_FILE, "%s: another post-processor already adds ids",
                               from->where);
            return rows[i].read(t, from, e);
        }
    return part_refuse(from, type,
                       "TemplateProcessing ByteLevel Sequence BertProcessing RobertaProcessing", e);
}

void template_free(struct template *t)
{
    ids_free(&t->front);
    ids_free(&t->back);
}
