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

/* As the user wrote it, or as the default is written, if that is still the value; else 17 digits.
 */
static void put_real(struct text *out, const struct config *c, int key)
{
    const struct table_key *k = &config_table.keys[key];
    const char *tries[] = { c->literal[key], table_example(k) };
    double x = *(const double *)config_value(c, key), y;
    char buf[40];

    for (int i = 0; i < COUNT_OF(tries); i++)
        if (value_read_real(tries[i], strlen(tries[i]), &y) == VALUE_FINE &&
            memcmp(&x, &y, sizeof x) == 0) {
            text_put(out, "%s", tries[i]);
            return;
        }
    snprintf(buf, sizeof buf, "%.17g", x);
    text_put(out, "%s%s", buf, strpbrk(buf, ".en") ? "" : ".0");
}

static void put_list(struct text *out, const struct table_key *k, const void *at)
{
    const struct config_ints *ints = at;
    const struct config_texts *texts = at;
    int n = k->type == TABLE_INTS ? ints->n : texts->n;

    for (int i = 0; i < n; i++) {
        if (i)
            text_put(out, ", ");
        if (k->type == TABLE_INTS)
            text_put(out, "%" PRId64, ints->v[i]);
        else
            put_quoted(out, texts->v[i]);
    }
}

void config_put_value(struct text *out, const struct config *c, int key)
{
    const struct table_key *k = &config_table.keys[key];
    const void *at = config_value(c, key);
    char name[CONFIG_DECK];
    int later;

    switch (k->type) {
    case TABLE_INT:
        text_put(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TABLE_REAL:
        put_real(out, c, key);
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
    case TABLE_TEXTS:
        put_list(out, k, at);
        break;
    }
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

char *config_write(const struct config *c)
{
    struct text out = { 0 };

    text_put(&out, "! The resolved input of a pretrain run. A key behind ! has no effect beside "
                   "the others.\n");
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct table_key *k = &config_table.keys[i];

        if (i == 0 || strcmp(k->group, k[-1].group))
            text_put(&out, "%s&%s\n", i ? "/\n" : "", k->group);
        text_put(&out, "  %s%s = ", config_key_is_idle(c, i) || is_open(c, i) ? "! " : "", k->name);
        config_put_value(&out, c, i);
        text_put(&out, "\n");
    }
    text_put(&out, "/\n");
    return out.s;
}

/* ---- on resume ---- */

int config_same(const struct config *a, const struct config *b, int key)
{
    const struct table_key *k = &config_table.keys[key];
    const void *x = config_value(a, key), *y = config_value(b, key);

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
    case TABLE_INTS: {
        const struct config_ints *p = x, *q = y;

        return p->n == q->n && memcmp(p->v, q->v, (size_t)p->n * sizeof *p->v) == 0;
    }
    case TABLE_TEXTS: {
        const struct config_texts *p = x, *q = y;

        for (int i = 0; i < p->n && p->n == q->n; i++)
            if (strcmp(p->v[i], q->v[i]))
                return 0;
        return p->n == q->n;
    }
    }
    return 0;
}

static enum status parse_stored(struct config *old, const char *stored, struct err *e)
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

enum status config_compare(const struct config *now, const char *stored, char **notes,
                           struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    struct text fixed = { 0 }, announced = { 0 };
    enum status st = parse_stored(old, stored, e);

    for (int i = 0; st == OK && i < CONFIG_KEYS; i++) {
        enum table_resume resume = config_table.keys[i].resume;
        struct text *out = resume == TABLE_FIXED ? &fixed : &announced;

        if (resume == TABLE_FREE || config_same(now, old, i) ||
            (is_model(i) && now->model.init_from[0] && !now->given[i]))
            continue;
        text_put(out, out == &fixed ? "\n  " : out->n ? "\n" : "");
        put_now(out, now, i);
        text_put(out, ", in the checkpoint ");
        config_put_value(out, old, i);
    }
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
    if (parse_stored(old, stored, NULL) == OK)
        value = *(const int *)((const char *)old + config_table.keys[key].at);
    mem_give(old);
    return value;
}

enum status config_take_model(struct config *c, const char *stored, struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    enum status st = parse_stored(old, stored, e);

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
