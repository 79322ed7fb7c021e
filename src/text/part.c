#include "text/part.h"

#include <stdio.h>
#include <string.h>

struct part part_top(const json_t *o)
{
    return (struct part){ .o = o };
}

static struct part part_below(const struct part *p, const json_t *o, const char *key, size_t i)
{
    struct part q = { .o = json_is_null(o) ? NULL : o };
    char index[32] = "";

    if (i != (size_t)-1)
        snprintf(index, sizeof index, "[%zu]", i);
    snprintf(q.where, sizeof q.where, "%.150s%s%.16s%s", p->where, *p->where ? "." : "", key,
             index);
    return q;
}

struct part part_member(const struct part *p, const char *key)
{
    return part_below(p, json_object_get(p->o, key), key, (size_t)-1);
}

struct part part_item(const struct part *p, const char *key, size_t i)
{
    return part_below(p, json_array_get(json_object_get(p->o, key), i), key, i);
}

static int is_word_of(const char *word, const char *words)
{
    size_t n = strlen(word);

    for (const char *p = words; (p = strstr(p, word)) != NULL; p++)
        if ((p == words || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return 1;
    return 0;
}

enum status part_keys(const struct part *p, const char *keys, struct err *e)
{
    const char *key;
    json_t *value;

    if (!json_is_object(p->o))
        return err_set(e, E_FILE, "%s: not an object", p->where);
    json_object_foreach(
        (json_t *)p->o, key,
        value) if (!*key || strchr(key, ' ') ||
                   !is_word_of(key, keys)) return err_set(e, E_FILE,
                                                          "%s%skey `%.60s` is not supported; its "
                                                          "effect on the ids is unknown "
                                                          "(known: %s)",
                                                          p->where, *p->where ? ": " : "", key,
                                                          keys);
    return OK;
}

static enum status wrong(const struct part *p, const char *key, const char *is, struct err *e)
{
    return err_set(e, E_FILE, "%s%s%s: must be %s", p->where, *p->where ? "." : "", key, is);
}

enum status part_flag(const struct part *p, const char *key, int *v, struct err *e)
{
    const json_t *o = json_object_get(p->o, key);

    if (!o || json_is_null(o))
        return OK;
    if (!json_is_boolean(o))
        return wrong(p, key, "true or false", e);
    *v = json_is_true(o);
    return OK;
}

enum status part_count(const struct part *p, const char *key, int64_t lo, int64_t hi, int64_t *v,
                       struct err *e)
{
    const json_t *o = json_object_get(p->o, key);
    char is[80];

    if (!o || json_is_null(o))
        return OK;
    snprintf(is, sizeof is, "an integer from %lld to %lld", (long long)lo, (long long)hi);
    if (!json_is_integer(o) || json_integer_value(o) < lo || json_integer_value(o) > hi)
        return wrong(p, key, is, e);
    *v = json_integer_value(o);
    return OK;
}

enum status part_text(const struct part *p, const char *key, const char **s, size_t *n,
                      struct err *e)
{
    const json_t *o = json_object_get(p->o, key);

    *s = NULL;
    *n = 0;
    if (!o || json_is_null(o))
        return OK;
    if (!json_is_string(o))
        return wrong(p, key, "a text", e);
    *s = json_string_value(o);
    *n = json_string_length(o);
    return OK;
}

enum status part_need_text(const struct part *p, const char *key, const char **s, size_t *n,
                           struct err *e)
{
    enum status st = part_text(p, key, s, n, e);

    return st == OK && !*s ? wrong(p, key, "given, as a text", e) : st;
}

enum status part_array(const struct part *p, const char *key, size_t *n, struct err *e)
{
    const json_t *o = json_object_get(p->o, key);

    if (!json_is_array(o))
        return wrong(p, key, "an array", e);
    *n = json_array_size(o);
    return OK;
}

enum status part_refuse(const struct part *p, const char *what, const char *known, struct err *e)
{
    return err_set(e, E_FILE, "%s: `%.100s` is not supported (known: %s)", p->where, what, known);
}
