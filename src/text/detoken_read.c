#include <string.h>

#include "text/detoken.h"
#include "text/unicode.h"

static const char known[] = "ByteLevel Replace ByteFallback Fuse Strip Metaspace Sequence";

static enum status keep_text(struct detoken_step *t, const struct part *from, const char *key,
                             int one, struct err *e)
{
    const char *s;
    size_t n;
    enum status st = part_need_text(from, key, &s, &n, e);

    if (st == OK && one && (n == 0 || n != (size_t)unicode_length(s[0])))
        st = err_set(e, E_FILE, "%s.%s: must be one character", from->where, key);
    if (st != OK)
        return st;
    t->text = mem_take(n + 1);
    memcpy(t->text, s, n);
    t->n = n;
    return OK;
}

static enum status read_bytes(struct detoken_step *t, const struct part *from, struct err *e)
{
    (void)t;
    return part_keys(from, "type add_prefix_space trim_offsets use_regex", e);
}

static enum status read_replace(struct detoken_step *t, const struct part *from, struct err *e)
{
    struct part pattern = part_member(from, "pattern");
    enum status st = part_keys(from, "type pattern content", e);

    if (st == OK)
        st = pattern_read(&t->pattern, &pattern, e);
    return st == OK ? keep_text(t, from, "content", 0, e) : st;
}

static enum status read_plain(struct detoken_step *t, const struct part *from, struct err *e)
{
    (void)t;
    return part_keys(from, "type", e);
}

static enum status read_strip(struct detoken_step *t, const struct part *from, struct err *e)
{
    enum status st = part_keys(from, "type content start stop", e);

    if (st == OK)
        st = keep_text(t, from, "content", 1, e);
    if (st == OK)
        st = part_count(from, "start", 0, INT32_MAX, &t->start, e);
    return st == OK ? part_count(from, "stop", 0, INT32_MAX, &t->stop, e) : st;
}

static enum status read_spaces(struct detoken_step *t, const struct part *from, struct err *e)
{
    const char *scheme;
    size_t n;
    int prefix = 1;
    enum status st =
        part_keys(from, "type replacement add_prefix_space prepend_scheme split str_rep", e);

    if (st == OK)
        st = keep_text(t, from, "replacement", 1, e);
    if (st == OK)
        st = part_text(from, "prepend_scheme", &scheme, &n, e);
    if (st == OK)
        st = part_flag(from, "add_prefix_space", &prefix, e);
    if (st != OK)
        return st;
    t->keep = scheme && strcmp(scheme, "never") == 0;
    if (scheme && !t->keep && strcmp(scheme, "first") != 0 && strcmp(scheme, "always") != 0)
        return err_set(e, E_FILE, "%s.prepend_scheme: `%.60s` is not supported", from->where,
                       scheme);
    if (!prefix && !t->keep)
        return err_set(e, E_FILE,
                       "%s: add_prefix_space is false, but prepend_scheme is not `never`",
                       from->where);
    return OK;
}

static enum status read_sequence(struct detoken *d, const struct part *from, struct err *e)
{
    size_t n = 0;
    enum status st = part_keys(from, "type decoders", e);

    if (st == OK)
        st = part_array(from, "decoders", &n, e);
    for (size_t i = 0; st == OK && i < n; i++) {
        struct part item = part_item(from, "decoders", i);

        st = item.o ? detoken_read(d, &item, e) : err_set(e, E_FILE, "%s: null", item.where);
    }
    return st;
}

static const struct row {
    const char *name;
    enum detoken_kind kind;
    int fuses, takes_fused; /* it makes one token of all; it works on a token in pieces */
    enum status (*read)(struct detoken_step *t, const struct part *from, struct err *e);
} rows[] = {
    { "ByteLevel", DETOKEN_BYTES, 1, 0, read_bytes },
    { "Replace", DETOKEN_REPLACE, 0, 0, read_replace },
    { "ByteFallback", DETOKEN_FALLBACK, 0, 0, read_plain },
    { "Fuse", DETOKEN_FUSE, 1, 1, read_plain },
    { "Strip", DETOKEN_STRIP, 0, 1, read_strip },
    { "Metaspace", DETOKEN_SPACES, 0, 0, read_spaces },
};

static int fuses(const struct detoken_step *t)
{
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].kind == t->kind && rows[i].fuses)
            return 1;
    return t->fused;
}

static enum status read_step(struct detoken *d, const struct row *row, const struct part *from,
                             struct err *e)
{
    struct detoken_step *t = &d->step[d->n];

    if (d->n == DETOKEN_STEPS)
        return err_set(e, E_FILE, "%s: more than %d steps are not supported", from->where,
                       DETOKEN_STEPS);
    t->kind = row->kind;
    t->fused = d->n && fuses(t - 1);
    d->n++;
    if (t->fused && !row->takes_fused)
        return err_set(e, E_FILE, "%s: `%s` is not supported behind Fuse or ByteLevel", from->where,
                       row->name);
    return row->read(t, from, e);
}

enum status detoken_read(struct detoken *d, const struct part *from, struct err *e)
{
    const char *type;
    size_t n;
    enum status st;

    if (!from->o) {
        d->step[d->n++].kind = DETOKEN_JOIN;
        return OK;
    }
    if ((st = part_need_text(from, "type", &type, &n, e)) != OK)
        return st;
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(d, from, e);
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(type, rows[i].name) == 0)
            return read_step(d, &rows[i], from, e);
    return part_refuse(from, type, known, e);
}

void detoken_free(struct detoken *d)
{
    for (int i = 0; i < d->n; i++) {
        mem_give(d->step[i].text);
        pattern_free(&d->step[i].pattern);
    }
}
