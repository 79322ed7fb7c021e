#include "convert/journal.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "hf/json_text.h"

enum {
    JOURNAL_VERSION = 1,
    NUMBERS = sizeof(struct journal_point) / sizeof(int64_t),
    JSON_MAX = 1 << 20
};
#define FORMAT "pretrain-data tokenize"

_Static_assert(NUMBERS * sizeof(int64_t) == sizeof(struct journal_point), "only int64_t");

/* ---- as JSON ---- */

static void put_point(struct json_text *t, const char *name, const struct journal_point *p)
{
    int64_t v[NUMBERS];

    memcpy(v, p, sizeof v);
    json_text_add(t, ",\n\"%s\":[", name);
    for (int i = 0; i < NUMBERS; i++)
        json_text_add(t, "%s%lld", i ? "," : "", (long long)v[i]);
    json_text_add(t, "]");
}

/* Always by the same name beside, so that a kill leaves no more than one. */
static enum status replace(const char *path, const char *text, size_t n, struct err *e)
{
    char beside[4200];

    snprintf(beside, sizeof beside, "%s-new", path);
    return file_write_by(beside, path, text, n, e);
}

enum status journal_remove(const char *path, struct err *e)
{
    char beside[4200];

    snprintf(beside, sizeof beside, "%s-new", path);
    return file_remove(beside, e) == OK ? file_remove(path, e) : E_FILE;
}

enum status journal_write(const char *path, const struct journal *j, struct err *e)
{
    struct json_text t = { 0 };
    enum status st;

    json_text_add(&t, "{\"format\":\"" FORMAT "\",\"version\":%d,\n\"tokenizer\":\"%s\",",
                  JOURNAL_VERSION, j->tokenizer.s);
    json_text_add(&t, "\n\"options\":");
    json_text_string(&t, j->options, strlen(j->options));
    json_text_add(&t, ",\n\"replace\":%lld,\"before\":\"%s\",\"at\":\"%s\"", (long long)j->replace,
                  j->before.s, j->at.s);
    put_point(&t, "begin", &j->begin);
    put_point(&t, "now", &j->now);
    json_text_add(&t, "}\n");
    st = replace(path, t.s, t.n, e);
    mem_give(t.s);
    return st;
}

static int get_text(const json_t *o, const char *name, char *to, size_t room)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s && (size_t)snprintf(to, room, "%s", s) < room;
}

static int get_point(const json_t *o, const char *name, struct journal_point *p)
{
    const json_t *list = json_object_get(o, name);
    int64_t v[NUMBERS];

    if (json_array_size(list) != NUMBERS)
        return 0;
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *x = json_array_get(list, (size_t)i);

        if (!json_is_integer(x) || json_integer_value(x) < 0)
            return 0;
        v[i] = json_integer_value(x);
    }
    memcpy(p, v, sizeof v);
    return 1;
}

static int get_journal(const json_t *o, struct journal *j)
{
    char format[64];

    j->replace = json_integer_value(json_object_get(o, "replace"));
    return get_text(o, "format", format, sizeof format) && strcmp(format, FORMAT) == 0 &&
           json_integer_value(json_object_get(o, "version")) == JOURNAL_VERSION &&
           get_text(o, "tokenizer", j->tokenizer.s, sizeof j->tokenizer.s) &&
           get_text(o, "options", j->options, sizeof j->options) &&
           get_text(o, "before", j->before.s, sizeof j->before.s) &&
           get_text(o, "at", j->at.s, sizeof j->at.s) && get_point(o, "begin", &j->begin) &&
           get_point(o, "now", &j->now);
}

enum status journal_read(const char *path, struct journal *j, struct err *e)
{
    char *text;
    size_t n;
    enum status st = file_read_text(path, JSON_MAX, &text, &n, e);
    json_t *o;

    if (st != OK)
        return st;
    o = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (!get_journal(o, j))
        st = err_set(e, E_FILE, "%s: not a journal of this version", path);
    json_decref(o);
    mem_give(text);
    return st;
}

/* ---- is it the same work? ---- */

struct hash_text journal_inputs(const struct input_list *l, int64_t from, int64_t to)
{
    struct hash_stream *h = hash_open();

    for (int64_t i = from; i < to && i < l->n; i++) {
        int64_t numbers[] = { l->at[i].size, l->at[i].changed, l->at[i].format };

        hash_add(h, l->at[i].path, strlen(l->at[i].path) + 1);
        hash_add(h, numbers, sizeof numbers);
    }
    return hash_close(h);
}

static int same(const struct hash_text *a, const struct hash_text *b)
{
    return strcmp(a->s, b->s) == 0;
}

const struct journal_point *journal_resume(const struct journal *old, const struct journal *new,
                                           const struct input_list *l, char why[3000])
{
    int64_t at = old->now.place.input;
    struct hash_text before = journal_inputs(l, 0, at), now = journal_inputs(l, at, at + 1);

    *why = 0;
    if (!same(&old->tokenizer, &new->tokenizer))
        snprintf(why, 3000, "the tokenizer is another");
    else if (strcmp(old->options, new->options) != 0)
        snprintf(why, 3000, "the options were %s", old->options);
    else if (old->replace > new->replace)
        snprintf(why, 3000, "it was --invalid-utf8 replace");
    else if (at >= l->n || !same(&before, &old->before))
        snprintf(why, 3000, "inputs that were read have changed (name, size or time)");
    if (*why)
        return NULL;
    if (same(&now, &old->at))
        return &old->now;
    say("%s has changed: going on from its beginning", l->at[at].path);
    return &old->begin;
}
