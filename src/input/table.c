#include "input/table.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAMES_MAX = 128, NAME_MAX_LENGTH = 64 };

int table_is_list(const struct table_key *k)
{
    return k->type >= TABLE_INTS;
}

int table_group_index(const struct table *t, const char *s, size_t n)
{
    for (int i = 0; i < t->ngroups; i++)
        if (value_is_word(s, n, t->groups[i].name))
            return i;
    return -1;
}

const struct table_key *table_find(const struct table *t, const char *group, const char *s,
                                   size_t n)
{
    for (int i = 0; i < t->nkeys; i++)
        if (strcmp(t->keys[i].group, group) == 0 && value_is_word(s, n, t->keys[i].name))
            return &t->keys[i];
    return NULL;
}

int table_is_key(const struct table *t, const char *s, size_t n)
{
    for (int i = 0; i < t->nkeys; i++)
        if (value_is_word(s, n, t->keys[i].name))
            return 1;
    return 0;
}

const char *table_choice(const struct table_key *k, int i, int *later, char buf[CONFIG_DECK])
{
    const char *s = k->choices;
    size_t n;

    for (; i > 0 && s; i--) {
        s = strchr(s, '|');
        s += s != NULL;
    }
    if (!s || !*s)
        return NULL;
    *later = *s == '!';
    s += *later;
    n = strcspn(s, "|");
    snprintf(buf, CONFIG_DECK, "%.*s", (int)n, s);
    return buf;
}

const char *table_range(const struct table_key *k, char *buf, size_t room)
{
    buf[0] = 0;
    if (k->type == TABLE_BOOL || k->type == TABLE_TEXT || k->type == TABLE_CHOICE ||
        k->type == TABLE_TEXTS)
        return buf;
    if (k->hi > 1e9)
        snprintf(buf, room, "at least %.10g", k->lo);
    else
        snprintf(buf, room, "%.10g to %.10g", k->lo, k->hi);
    return buf;
}

const char *table_example(const struct table_key *k)
{
    return k->def + (k->def[0] == TABLE_REQUIRED[0] || k->def[0] == TABLE_REQUIRED_SHAPE[0]);
}

void table_set_default(const struct table_key *k, void *at, int example)
{
    const char *text = example || table_example(k) == k->def ? table_example(k) : "", *s;
    size_t n = strlen(text);
    char buf[CONFIG_DECK];
    int later;

    if (!n && k->type != TABLE_TEXT && !table_is_list(k))
        return;
    switch (k->type) {
    case TABLE_INT:
        value_read_int(text, n, at);
        break;
    case TABLE_REAL:
        value_read_real(text, n, at);
        break;
    case TABLE_BOOL:
        value_read_bool(text, n, at);
        break;
    case TABLE_TEXT:
        snprintf(at, CONFIG_TEXT, "%s", text);
        break;
    case TABLE_CHOICE:
        for (int i = 0; (s = table_choice(k, i, &later, buf)); i++)
            if (strcmp(s, text) == 0)
                *(int *)at = i;
        break;
    case TABLE_INTS:
        ((struct config_ints *)at)->n = n > 0;
        value_read_int(text, n, ((struct config_ints *)at)->v);
        break;
    case TABLE_REALS:
        ((struct config_reals *)at)->n = n > 0;
        value_read_real(text, n, ((struct config_reals *)at)->v);
        break;
    case TABLE_TEXTS:
        ((struct config_texts *)at)->n = n > 0;
        snprintf(((struct config_texts *)at)->v[0], CONFIG_TEXT, "%s", text);
        break;
    }
}

void table_set_defaults(const struct table *t, char *base, int examples)
{
    for (int i = 0; i < t->nkeys; i++) {
        const struct table_key *k = &t->keys[i];
        int g = table_group_index(t, k->group, strlen(k->group));
        int most = g < 0 ? 1 : t->groups[g].most;

        for (int j = 0; j < most; j++)
            table_set_default(k, base + k->at + (most > 1 ? (size_t)j * t->groups[g].stride : 0),
                              examples);
    }
}

static void hint(struct hint *h, const char *before, const char *name, const char *group)
{
    if (group)
        snprintf(h->s, sizeof h->s, "%s`%.60s` of &%.60s?", before, name, group);
    else
        snprintf(h->s, sizeof h->s, "%s`%.60s`?", before, name);
}

struct hint table_hint_group(const struct table *t, const char *s, size_t n)
{
    const char *names[NAMES_MAX], *near;
    char word[NAME_MAX_LENGTH + 1];
    struct hint h = { "" };
    int k = 0;

    snprintf(word, sizeof word, "%.*s", (int)(n < NAME_MAX_LENGTH ? n : NAME_MAX_LENGTH), s);
    for (int i = 0; i < t->ngroups && k < NAMES_MAX; i++)
        if (!t->groups[i].later)
            names[k++] = t->groups[i].name;
    near = options_nearest(word, names, k);
    if (near)
        snprintf(h.s, sizeof h.s, "; did you mean &%.60s?", near);
    return h;
}

static int is_alias(const struct table_key *k, const char *s, size_t n)
{
    for (const char *a = k->aliases; *a; a += strspn(a, " ")) {
        size_t len = strcspn(a, " ");

        if (len == n && strncasecmp(a, s, n) == 0)
            return 1;
        a += len;
    }
    return 0;
}

/* "; `interval` belongs to &checkpoint, &eval, &log" */
static int hint_other_group(const struct table *t, struct hint *h, const char *s, size_t n)
{
    size_t used = 0;

    for (int i = 0; i < t->nkeys; i++)
        if (value_is_word(s, n, t->keys[i].name) && used + 64 < sizeof h->s)
            used +=
                (size_t)snprintf(h->s + used, sizeof h->s - used,
                                 used ? ", &%.30s" : "; it belongs to &%.30s", t->keys[i].group);
    return used > 0;
}

struct hint table_hint_key(const struct table *t, const char *group, const char *s, size_t n)
{
    const char *names[NAMES_MAX], *near;
    char word[NAME_MAX_LENGTH + 1];
    struct hint h = { "" };
    int k = 0, pass;

    if (hint_other_group(t, &h, s, n))
        return h;
    for (pass = 0; pass < 2; pass++) /* this group first */
        for (int i = 0; i < t->nkeys; i++)
            if ((strcmp(t->keys[i].group, group) == 0) == (pass == 0) &&
                is_alias(&t->keys[i], s, n)) {
                hint(&h, "; did you mean ", t->keys[i].name, pass ? t->keys[i].group : NULL);
                return h;
            }
    snprintf(word, sizeof word, "%.*s", (int)(n < NAME_MAX_LENGTH ? n : NAME_MAX_LENGTH), s);
    for (char *c = word; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    for (pass = 0; pass < 2; pass++, k = 0) {
        for (int i = 0; i < t->nkeys && k < NAMES_MAX; i++)
            if ((strcmp(t->keys[i].group, group) == 0) == (pass == 0))
                names[k++] = t->keys[i].name;
        near = options_nearest(word, names, k);
        for (int i = 0; near && i < t->nkeys; i++)
            if (t->keys[i].name == near) {
                hint(&h, "; did you mean ", near, pass ? t->keys[i].group : NULL);
                return h;
            }
    }
    return h;
}
