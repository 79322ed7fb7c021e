#include "input/reading.h"

#include "base/options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct cell { /* one value on its way */
    struct reading *r;
    const struct table_key *key;
    struct table_mark *mark;
    const struct source *source;
    const char *s; /* its bytes */
    size_t at, n;
    enum value_kind kind;
};

/* Complains at the value and returns 0. */
__attribute__((format(printf, 2, 3))) static int refuse(const struct cell *x, const char *fmt, ...)
{
    char text[COMPLAINT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    complaint_add(x->r->complaints, x->source, x->at, "%s", text);
    x->mark->bad = 1;
    return 0;
}

static struct quote shown(const struct cell *x)
{
    return complaint_quote(x->s, x->n);
}

static int check_range(const struct cell *x, double v)
{
    char range[80];

    if (v >= x->key->lo && v <= x->key->hi)
        return 1;
    return refuse(x, "`%s` = %s is out of range: %s%s%s", x->key->name, shown(x).s,
                  table_range(x->key, range, sizeof range), *x->key->unit ? " " : "", x->key->unit);
}

static int convert_int(const struct cell *x, void *out)
{
    int64_t v = 0;
    char better[32];

    if (x->kind == VALUE_TEXT)
        return refuse(x, "`%s` needs an integer, without quotes; found %s", x->key->name,
                      shown(x).s);
    switch (value_read_int(x->s, x->n, &v)) {
    case VALUE_FINE:
        break;
    case VALUE_OVERFLOW:
        return refuse(x, "`%s` = %s is too large for an integer", x->key->name, shown(x).s);
    default:
        value_suggest_int(x->s, x->n, better, sizeof better);
        if (*better)
            return refuse(x, "`%s` needs an integer: write %s, not %s", x->key->name, better,
                          shown(x).s);
        return refuse(x, "`%s` needs an integer; found `%s`", x->key->name, shown(x).s);
    }
    if (!check_range(x, (double)v))
        return 0;
    *(int64_t *)out = v;
    return 1;
}

static int convert_real(const struct cell *x, void *out)
{
    double v = 0;

    if (x->kind == VALUE_TEXT)
        return refuse(x, "`%s` needs a real number, without quotes; found %s", x->key->name,
                      shown(x).s);
    switch (value_read_real(x->s, x->n, &v)) {
    case VALUE_FINE:
        break;
    case VALUE_OVERFLOW:
        return refuse(x, "`%s` = %s is too large for a real number", x->key->name, shown(x).s);
    case VALUE_UNDERFLOW:
        return refuse(x, "`%s` = %s is too small: it would become 0", x->key->name, shown(x).s);
    case VALUE_NOT_FINITE:
        return refuse(x, "`%s` must be finite; found `%s`", x->key->name, shown(x).s);
    case VALUE_SYNTAX:
        return refuse(x, "`%s` needs a real number, such as 0.5 or 1e-3; found `%s`", x->key->name,
                      shown(x).s);
    }
    if (!check_range(x, v))
        return 0;
    *(double *)out = v;
    snprintf(x->mark->literal, sizeof x->mark->literal, "%.*s",
             x->n < CONFIG_LITERAL ? (int)x->n : 0, x->s);
    return 1;
}

static int convert_bool(const struct cell *x, void *out)
{
    const char *better;

    if (x->kind == VALUE_WORD && value_read_bool(x->s, x->n, out) == VALUE_FINE)
        return 1;
    better =
        value_suggest_bool(x->s + (x->kind == VALUE_TEXT), x->n - (x->kind == VALUE_TEXT ? 2 : 0));
    if (better)
        return refuse(x, "`%s` needs .true. or .false.: write %s, not %s", x->key->name, better,
                      shown(x).s);
    return refuse(x, "`%s` needs .true. or .false.; found %s", x->key->name, shown(x).s);
}

/* The quotes that word processors make: U+2018, U+2019, U+201C, U+201D. */
static int is_typographic(const struct cell *x)
{
    return x->n >= 3 && memcmp(x->s, "\xe2\x80", 2) == 0 && strchr("\x98\x99\x9c\x9d", x->s[2]);
}

static int convert_text(const struct cell *x, char *out)
{
    if (x->kind == VALUE_WORD && is_typographic(x))
        return refuse(x, "`%s`: these are typographic quotes; write ' or \"", x->key->name);
    if (x->kind == VALUE_WORD && x->source->is_set)
        return refuse(x, "`%s` needs text in quotes: '%s' (in a shell: --set \"%s.%s='%s'\")",
                      x->key->name, shown(x).s, x->key->group, x->key->name, shown(x).s);
    if (x->kind == VALUE_WORD)
        return refuse(x, "`%s` needs text in quotes: write '%s'", x->key->name, shown(x).s);
    switch (value_read_text(x->s, x->n, out, CONFIG_TEXT)) {
    case VALUE_FINE:
        return 1;
    case VALUE_OVERFLOW:
        return refuse(x, "`%s` is too long: at most %d bytes", x->key->name, CONFIG_TEXT - 1);
    default:
        return refuse(x, "`%s` has a control character in its text", x->key->name);
    }
}

/* "'a', 'b'" without what is not in this build. */
static void list_choices(const struct table_key *k, char *buf, size_t room)
{
    char name[CONFIG_DECK];
    size_t used = 0;
    int later;

    buf[0] = 0;
    for (int i = 0; table_choice(k, i, &later, name) && used + 40 < room; i++)
        if (!later)
            used += (size_t)snprintf(buf + used, room - used, "%s'%.32s'", used ? ", " : "", name);
}

static int convert_choice(const struct cell *x, void *out)
{
    char text[CONFIG_TEXT], name[CONFIG_DECK], list[200];
    const char *names[16], *near;
    char stored[16][32];
    int later, i;

    if (!convert_text(x, text))
        return 0;
    list_choices(x->key, list, sizeof list);
    for (i = 0; i < 16 && table_choice(x->key, i, &later, name); i++) {
        if (strcmp(name, text) == 0 && later)
            return refuse(x, "`%s` = '%s' is not in this build; it takes %s", x->key->name, name,
                          list);
        if (strcmp(name, text) == 0) {
            *(int *)out = i;
            return 1;
        }
        snprintf(stored[i], sizeof stored[i], "%.31s", name);
        names[i] = stored[i];
    }
    near = *text ? options_nearest(text, names, i) : NULL;
    return refuse(x, "`%s` = %s is none of %s%s%s%s", x->key->name, shown(x).s, list,
                  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int convert(const struct cell *x, void *out)
{
    switch (x->key->type) {
    case TABLE_INT:
    case TABLE_INTS:
        return convert_int(x, out);
    case TABLE_REAL:
    case TABLE_REALS:
        return convert_real(x, out);
    case TABLE_BOOL:
        return convert_bool(x, out);
    case TABLE_CHOICE:
        return convert_choice(x, out);
    default:
        return convert_text(x, out);
    }
}

/* Where element i of the list is. */
static void *list_element(const struct table_key *k, void *at, int64_t i)
{
    if (k->type == TABLE_INTS)
        return &((struct config_ints *)at)->v[i];
    if (k->type == TABLE_REALS)
        return &((struct config_reals *)at)->v[i];
    return ((struct config_texts *)at)->v[i];
}

static int list_limit(const struct table_key *k)
{
    return k->type == TABLE_TEXTS ? CONFIG_TEXT_LIST : CONFIG_LIST;
}

static size_t element_bytes(const struct table_key *k)
{
    return k->type == TABLE_TEXTS ? CONFIG_TEXT : sizeof(int64_t); /* and of a double */
}

static void warn_twice(const struct cell *x, const struct assignment *a)
{
    int line, column;

    if (a->source->is_set || x->mark->source != a->source ||
        complaints_warned_enough(x->r->complaints))
        return;
    complaint_locate(x->mark->source, x->mark->at, &line, &column);
    complaint_warn(x->r->complaints, a->source, a->name_at,
                   "`%s` was given before, on line %d; this one counts", x->key->name, line);
}

static void load_value(struct cell *x, const struct value *v)
{
    x->at = v->at;
    x->n = v->n;
    x->s = x->source->text + v->at;
    x->kind = v->kind;
}

static void assign_scalar(struct cell *x, void *at, const struct assignment *a)
{
    int64_t count = 0;

    if (a->lo) {
        x->at = a->name_at;
        refuse(x, "`%s` takes one value, not a list: write it without (...)", x->key->name);
        return;
    }
    for (int i = 0; i < a->n; i++)
        if (__builtin_add_overflow(count, a->values[i].repeat, &count))
            count = INT64_MAX;
    load_value(x, &a->values[0]);
    if (count > 1) {
        refuse(x, "`%s` takes one value; found %" PRId64, x->key->name, count);
        return;
    }
    if (x->mark->given)
        warn_twice(x, a);
    convert(x, at);
    x->mark->given = 1;
    x->mark->source = a->source;
    x->mark->at = x->at;
}

/* One value into elements i .. i + repeat - 1 (from 0). */
static int assign_run(struct cell *x, void *at, const struct value *v, int64_t i, int *twice)
{
    void *first = list_element(x->key, at, i);

    load_value(x, v);
    if (!convert(x, first))
        return 0;
    for (int64_t j = i; j < i + v->repeat; j++) {
        if (j > i)
            memcpy(list_element(x->key, at, j), first, element_bytes(x->key));
        *twice |= x->mark->element[j] == 2;
        x->mark->element[j] = 2;
    }
    return 1;
}

static void assign_list(struct cell *x, void *at, const struct assignment *a)
{
    int *length = at;
    int64_t limit = a->hi ? a->hi : list_limit(x->key), i = a->lo ? a->lo - 1 : 0;
    int twice = 0;

    if (a->lo && (a->lo > list_limit(x->key) || a->hi > list_limit(x->key))) {
        x->at = a->name_at;
        refuse(x, "`%s` has at most %d elements", x->key->name, list_limit(x->key));
        return;
    }
    if (!a->lo) { /* the whole list anew */
        twice = x->mark->given;
        table_set_default(x->key, at, 0);
        memset(x->mark->element, 0, sizeof x->mark->element);
    }
    if (!a->lo || !x->mark->given)
        memset(x->mark->element, 1, (size_t)*length);
    for (int k = 0; k < a->n; i += a->values[k++].repeat) {
        if (a->values[k].repeat > limit - i) {
            load_value(x, &a->values[k]);
            refuse(x,
                   a->hi ? "too many values for `%s`: the range ends at %" PRId64
                         : "too many values for `%s`: at most %" PRId64,
                   x->key->name, limit);
            break;
        }
        if (a->values[k].kind != VALUE_NULL && !assign_run(x, at, &a->values[k], i, &twice))
            break;
    }
    if (twice)
        warn_twice(x, a);
    if (!a->lo || i > *length)
        *length = (int)i;
    x->mark->given = 1;
    x->mark->source = a->source;
    x->mark->at = a->values[0].at;
}

/* The key is not in the group: say where it may belong. */
static void refuse_unknown(struct reading *r, const char *group, const struct assignment *a)
{
    const struct table *t = r->table;
    const char *name = a->source->text + a->name_at;
    struct quote q = complaint_quote(name, a->name_n);
    struct hint h;

    for (int i = 0; i < t->nlater; i++)
        if (strcmp(t->later[i].group, group) == 0 &&
            value_is_word(name, a->name_n, t->later[i].name)) {
            complaint_add(r->complaints, a->source, a->name_at, "`%s` is not in this build", q.s);
            return;
        }
    h = complaints_full(r->complaints) ? (struct hint){ "" }
                                       : table_hint_key(t, group, name, a->name_n);
    complaint_add(r->complaints, a->source, a->name_at, "no key `%s` in &%s%s", q.s, group, h.s);
}

/* Where the instance that was opened last begins, after the first one. */
static size_t instance_at(const struct reading *r, int group)
{
    const struct table_group *g = &r->table->groups[group];

    return g->most > 1 ? (size_t)(r->seen[group] - 1) * g->stride : 0;
}

/* Trailing nulls change nothing. */
static int without_nulls(const struct assignment *a)
{
    int n = a->n;

    while (n > 0 && a->values[n - 1].kind == VALUE_NULL)
        n--;
    return n;
}

void reading_assign(struct reading *r, int group, const struct assignment *a)
{
    const struct table_group *g = &r->table->groups[group];
    const struct table_key *k =
        table_find(r->table, g->name, a->source->text + a->name_at, a->name_n);
    struct assignment b = *a;
    struct cell x = { .r = r, .key = k, .source = a->source };
    char *at;

    if (!k) {
        if (!a->bad)
            refuse_unknown(r, g->name, a);
        return;
    }
    x.mark = &r->marks[k - r->table->keys];
    b.n = without_nulls(a);
    if (a->bad)
        x.mark->bad = 1;
    if (a->bad || !b.n)
        return;
    at = r->base + k->at + instance_at(r, group);
    if (table_is_list(k))
        assign_list(&x, at, &b);
    else
        assign_scalar(&x, at, &b);
}

void reading_open_group(struct reading *r, int group, const struct source *s, size_t at)
{
    const struct table *t = r->table;
    const struct table_group *g = &t->groups[group];
    int line, column;

    r->seen[group]++;
    if (g->most > 1)
        *(int *)(r->base + g->count_at) = r->seen[group];
    complaint_locate(s, at, &line, &column);
    for (int i = 0; i < t->nkeys; i++)
        if (strcmp(t->keys[i].group, g->name) == 0) {
            int bad = r->marks[i].bad; /* in one instance is bad for rules on all */

            memset(&r->marks[i], 0, sizeof r->marks[i]);
            r->marks[i].bad = g->most > 1 && bad;
        }
    if (g->line_at)
        *(int *)(r->base + g->first_at + instance_at(r, group) + g->line_at) = line;
}

void reading_close_group(struct reading *r, int group)
{
    const struct table_group *g = &r->table->groups[group];

    for (int i = 0; i < r->table->nkeys; i++) {
        const struct table_key *k = &r->table->keys[i];
        struct table_mark *m = &r->marks[i];
        int n;

        if (strcmp(k->group, g->name) || !m->given || m->bad || !table_is_list(k))
            continue;
        n = *(const int *)(r->base + k->at + instance_at(r, group));
        for (int j = 0; j < n; j++)
            if (!m->element[j]) {
                complaint_add(r->complaints, m->source, m->at, "element %d of `%s` has no value",
                              j + 1, k->name);
                m->bad = 1;
                break;
            }
    }
}
