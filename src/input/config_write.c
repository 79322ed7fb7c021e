#include "input/config_table.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- values as in a deck ---- */

static void put_quoted(struct text *out, const char *s)
{
    text_put(out, "'");
    for (; *s; s++)
        text_put(out, *s == '\'' ? "''" : "%c", *s);
    text_put(out, "'");
}

/* As the user wrote it (literal), or as the default is written, if that is still the value; else as
 * short as reads back. */
static void put_real(struct text *out, const struct table_key *k, double x, const char *literal)
{
    const char *tries[] = { literal, table_example(k) };
    double y;
    char buf[40];

    for (int i = 0; i < COUNT_OF(tries); i++)
        if (value_read_real(tries[i], strlen(tries[i]), &y) == VALUE_FINE &&
            memcmp(&x, &y, sizeof x) == 0) {
            text_put(out, "%s", tries[i]);
            return;
        }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        if (value_read_real(buf, strlen(buf), &y) == VALUE_FINE && y == x)
            break;
    }
    text_put(out, "%s%s", buf, strpbrk(buf, ".en") ? "" : ".0");
}

static void put_list(struct text *out, const struct table_key *k, const void *at)
{
    const struct config_ints *ints = at;
    const struct config_reals *reals = at;
    const struct config_texts *texts = at;
    int n = *(const int *)at;

    for (int i = 0; i < n; i++) {
        if (i)
            text_put(out, ", ");
        if (k->type == TABLE_INTS)
            text_put(out, "%" PRId64, ints->v[i]);
        else if (k->type == TABLE_REALS)
            put_real(out, k, reals->v[i], "");
        else
            put_quoted(out, texts->v[i]);
    }
}

static void put_value(struct text *out, const struct table_key *k, const void *at,
                      const char *literal)
{
    char name[CONFIG_DECK];
    int later;

    switch (k->type) {
    case TABLE_INT:
        text_put(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TABLE_REAL:
        put_real(out, k, *(const double *)at, literal);
        break;
    case TABLE_BOOL:
        text_put(out, *(const int *)at ? ".true." : ".false.");
        break;
    case TABLE_TEXT:
        put_quoted(out, at);
        break;
    case TABLE_CHOICE:
        put_quoted(out, table_choice(k, *(const int *)at, &later, name));
        break;
    case TABLE_INTS:
    case TABLE_REALS:
    case TABLE_TEXTS:
        put_list(out, k, at);
        break;
    }
}

void config_put_value(struct text *out, const struct config *c, int key)
{
    put_value(out, &config_table.keys[key], config_value(c, key), c->literal[key]);
}

static int is_model(int key)
{
    return strcmp(config_table.keys[key].group, "model") == 0;
}

/* Left to config.json, which has not been read. */
static int is_open(const struct config *c, int key)
{
    return is_model(key) && c->model.init_from[0] && !c->model.hidden_size && !c->given[key];
}

static void put_once(struct text *out, const struct config *c, int i)
{
    text_put(out, "  %s%s = ", config_key_is_idle(c, i) || is_open(c, i) ? "! " : "",
             config_table.keys[i].name);
    config_put_value(out, c, i);
    text_put(out, "\n");
}

/* Key i of an instance of a group; an empty list is its default. */
static void put_one_of_many(struct text *out, const struct config *c, const struct table_group *g,
                            int i, int instance)
{
    const struct table_key *k = &config_table.keys[i];
    const char *at = (const char *)config_value(c, i) + (size_t)instance * g->stride;

    if (table_is_list(k) && *(const int *)at == 0)
        return;
    text_put(out, "  %s = ", k->name);
    put_value(out, k, at, "");
    text_put(out, "\n");
}

static const struct table_group *group_of(const struct table_key *k)
{
    return &config_table.groups[table_group_index(&config_table, k->group, strlen(k->group))];
}

static int instances(const struct config *c, const struct table_group *g)
{
    return g->most == 1 ? 1 : *(const int *)((const char *)c + g->count_at);
}

/* All instances of the group whose first key is i. Returns the key behind its last. */
static int put_group(struct text *out, const struct config *c, int i)
{
    const struct table_key *k = &config_table.keys[i];
    const struct table_group *g = group_of(k);
    int end = i;

    while (end < CONFIG_KEYS && strcmp(config_table.keys[end].group, g->name) == 0)
        end++;
    for (int j = 0; j < instances(c, g); j++) {
        text_put(out, "&%s\n", g->name);
        for (int key = i; key < end; key++)
            if (g->most == 1)
                put_once(out, c, key);
            else
                put_one_of_many(out, c, g, key, j);
        text_put(out, "/\n");
    }
    return end;
}

char *config_write(const struct config *c)
{
    struct text out = { 0 };

    text_put(&out, "! The resolved input of a pretrain run. A key behind ! has no effect beside "
                   "the others.\n");
    for (int i = 0; i < CONFIG_KEYS;)
        i = put_group(&out, c, i);
    return out.s;
}

/* ---- on resume ---- */

static int same_texts(const struct config_texts *p, const struct config_texts *q)
{
    for (int i = 0; i < p->n && p->n == q->n; i++)
        if (strcmp(p->v[i], q->v[i]))
            return 0;
    return p->n == q->n;
}

static int same_value(const struct table_key *k, const void *x, const void *y)
{
    const struct config_ints *i = x, *j = y;
    const struct config_reals *r = x, *s = y;

    switch (k->type) {
    case TABLE_INT:
        return *(const int64_t *)x == *(const int64_t *)y;
    case TABLE_REAL:
        return *(const double *)x == *(const double *)y;
    case TABLE_BOOL:
    case TABLE_CHOICE:
        return *(const int *)x == *(const int *)y;
    case TABLE_TEXT:
        return strcmp(x, y) == 0;
    case TABLE_INTS:
        return i->n == j->n && memcmp(i->v, j->v, (size_t)i->n * sizeof *i->v) == 0;
    case TABLE_REALS:
        return r->n == s->n && memcmp(r->v, s->v, (size_t)r->n * sizeof *r->v) == 0;
    case TABLE_TEXTS:
        return same_texts(x, y);
    }
    return 0;
}

int config_same(const struct config *a, const struct config *b, int key)
{
    const struct table_key *k = &config_table.keys[key];
    const struct table_group *g = group_of(k);
    const char *x = config_value(a, key), *y = config_value(b, key);
    int n = instances(a, g), same = n == instances(b, g);

    for (int i = 0; i < n && same; i++)
        same = same_value(k, x + (size_t)i * g->stride, y + (size_t)i * g->stride);
    return same;
}

enum status config_read_stored(struct config *old, const char *stored, struct err *e)
{
    struct err why = { "" };

    if (config_parse_quiet(old, stored, strlen(stored), "stored input", &why) == OK)
        return OK;
    err_prefix(
        &why,
        "the input stored in the checkpoint cannot be read (was it written by another version?)");
    return err_set(e, E_FILE, "%s", why.text);
}

/* "train.seed = 43 (input.nml:4)" */
static void put_now(struct text *out, const struct config *now, int key)
{
    const struct table_key *k = &config_table.keys[key];

    text_put(out, "%s.%s = ", k->group, k->name);
    config_put_value(out, now, key);
    if (now->given[key] && now->place[key].line > 0)
        text_put(out, " (%s:%d)", now->deck, now->place[key].line);
    else if (now->given[key])
        text_put(out, " (--set)");
}

/* Once for each group with keys of which what was used is fixed. */
static void put_changed_groups(struct text *out, const struct config *now, const struct config *old,
                               int read)
{
    const char *said = "";

    for (int i = 0; i < CONFIG_KEYS && read; i++) {
        const struct table_key *k = &config_table.keys[i];

        if (k->resume != TABLE_USED || strcmp(said, k->group) == 0 || config_same(now, old, i))
            continue;
        said = k->group;
        text_put(out, "%s&%s has changed: the steps to come follow the input", out->n ? "\n" : "",
                 said);
    }
}

enum status config_compare(const struct config *now, const char *stored, char **notes,
                           struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    struct text fixed = { 0 }, announced = { 0 };
    enum status st = config_read_stored(old, stored, e);

    for (int i = 0; st == OK && i < CONFIG_KEYS; i++) {
        enum table_resume resume = config_table.keys[i].resume;
        struct text *out = resume == TABLE_FIXED ? &fixed : &announced;

        if (resume == TABLE_FREE || resume == TABLE_USED || config_same(now, old, i) ||
            (is_model(i) && now->model.init_from[0] && !now->given[i]))
            continue;
        text_put(out, out == &fixed ? "\n  " : out->n ? "\n" : "");
        put_now(out, now, i);
        text_put(out, ", in the checkpoint ");
        config_put_value(out, old, i);
    }
    put_changed_groups(&announced, now, old, st == OK);
    if (fixed.n)
        st = err_set(e, E_INPUT,
                     "%s: what a checkpoint fixes has changed:%.3000s\n"
                     "go back to the checkpoint's values, or give a new run another directory",
                     now->deck, fixed.s);
    *notes = announced.s ? announced.s : mem_copy_text("");
    mem_give(fixed.s);
    mem_give(old);
    return st;
}

int config_stored_choice(enum config_key key, const char *stored)
{
    struct config *old = mem_take(sizeof *old);
    int value = 0;

    BUG_IF(config_table.keys[key].type != TABLE_CHOICE);
    if (config_read_stored(old, stored, NULL) == OK)
        value = *(const int *)((const char *)old + config_table.keys[key].at);
    mem_give(old);
    return value;
}

enum status config_take_model(struct config *c, const char *stored, struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    enum status st = config_read_stored(old, stored, e);

    for (int i = 0; st == OK && i < CONFIG_KEYS; i++) {
        const struct table_key *k = &config_table.keys[i], *next = k + 1;
        size_t end = i + 1 < CONFIG_KEYS ? next->at : offsetof(struct config, given);

        if (!is_model(i) || i == KEY_model_init_from || c->given[i])
            continue;
        memcpy((char *)c + k->at, (const char *)old + k->at, end - k->at);
        memcpy(c->literal[i], old->literal[i], sizeof c->literal[i]);
    }
    mem_give(old);
    return st;
}
