#include "input/config_table.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct near {
    char s[160];
}; /* values that work, or reasons, for a message */

/* ---- words of rules.def; a size that is 0 is not known yet ---- */

/* init_from is given and the program has not filled in its shape yet. */
static int shape_is_awaited(const struct config *c)
{
    return c->model.init_from[0] &&
           (!c->model.hidden_size || !c->model.intermediate_size || !c->model.num_hidden_layers ||
            !c->model.num_attention_heads || !c->model.num_key_value_heads || !c->model.head_dim);
}

static int64_t kv_heads(const struct config *c)
{
    return c->model.num_key_value_heads ? c->model.num_key_value_heads
                                        : c->model.num_attention_heads;
}

static int64_t head_size(const struct config *c)
{
    int64_t heads = c->model.num_attention_heads;

    if (c->model.head_dim || shape_is_awaited(c) || !heads)
        return c->model.head_dim;
    return c->model.hidden_size % heads ? 0 : c->model.hidden_size / heads;
}

static int64_t replicas(const struct config *c)
{
    return c->parallel.dp ? c->parallel.dp : 1;
}

static int64_t decay_end(const struct config *c)
{
    return c->optim.decay_steps ? c->optim.decay_steps : c->train.train_steps;
}

static int64_t decay_length(const struct config *c)
{
    return c->optim.decay_steps ? c->optim.decay_steps : c->train.train_steps / 10;
}

static int split_by_cost(const struct config *c)
{
    return c->parallel.layers_per_stage.n == 1 && c->parallel.layers_per_stage.v[0] == 0;
}

static int64_t sum_of(const struct config_ints *x)
{
    int64_t sum = 0;

    for (int i = 0; i < x->n; i++)
        sum += x->v[i];
    return sum;
}

static int has_inner_zero(const struct config_ints *x)
{
    for (int i = 1; i + 1 < x->n; i++)
        if (x->v[i] == 0)
            return 1;
    return 0;
}

static int texts_are_full(const struct config_texts *x)
{
    for (int i = 0; i < x->n; i++)
        if (!x->v[i][0])
            return 0;
    return x->n > 0;
}

static int is_name(const char *s)
{
    return *s && strlen(s) < 64 &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               strlen(s);
}

/* Has no earlier instance the name of instance i? Names come first in these groups. */
static int is_first(const void *groups, size_t stride, int i)
{
    const char *first = groups, *name = first + (size_t)i * stride;

    for (int j = 0; j < i; j++)
        if (strcmp(first + (size_t)j * stride, name) == 0)
            return 0;
    return 1;
}

static double largest_of(const struct config_reals *x)
{
    double most = 0;

    for (int i = 0; i < x->n; i++)
        most = x->v[i] > most ? x->v[i] : most;
    return most;
}

static double largest_weight(const struct config *c)
{
    double most = 0;

    for (int i = 0; i < c->nsources; i++)
        most = c->sources[i].weight > most ? c->sources[i].weight : most;
    return most;
}

/* Does a stage give source i a weight? */
static int is_used(const struct config *c, int i)
{
    for (int s = 0; s < c->nstages; s++)
        if (i < c->stages[s].weights.n && c->stages[s].weights.v[i] > 0)
            return 1;
    return 0;
}

static int64_t tokens_of_micro_batch(const struct config *c)
{
    return c->train.micro_batch_size * c->train.sequence_length / c->parallel.cp;
}

/* False while the heads are not known or wrong in themselves. */
static int tp_misses_kv(const struct config *c, int64_t tp)
{
    int64_t kv = kv_heads(c);

    return kv && c->model.num_attention_heads % kv == 0 && kv % tp && tp % kv;
}

static int tp_fits(const struct config *c, int64_t tp)
{
    return c->model.num_attention_heads % tp == 0 && c->model.intermediate_size % tp == 0 &&
           tokens_of_micro_batch(c) % tp == 0 && !tp_misses_kv(c, tp);
}

static struct near tp_misfits(const struct config *c)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        { "num_attention_heads", c->model.num_attention_heads },
        { "intermediate_size", c->model.intermediate_size },
        { "micro_batch_size * sequence_length", tokens_of_micro_batch(c) },
    };
    struct near x = { "" };
    size_t n = 0;

    for (int i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].value % c->parallel.tp)
            n += (size_t)snprintf(x.s + n, sizeof x.s - n, "%s%s = %" PRId64, n ? ", " : "",
                                  rows[i].name, rows[i].value);
    if (!n)
        snprintf(x.s, sizeof x.s, "num_key_value_heads = %" PRId64 " or be a multiple of it",
                 kv_heads(c));
    return x;
}

/* ---- nearest values that work: one below, one above ---- */

typedef int fits(const struct config *c, int64_t v);

static struct near nearest(const struct config *c, int64_t v, int64_t top, fits *ok)
{
    struct near x = { "" };
    int64_t low = v < top ? v - 1 : top, high = v + 1;

    while (low > 0 && !ok(c, low))
        low--;
    while (high <= top && !ok(c, high))
        high++;
    if (low > 0 && high <= top)
        snprintf(x.s, sizeof x.s, "%" PRId64 ", %" PRId64, low, high);
    else
        snprintf(x.s, sizeof x.s, "%" PRId64, low > 0 ? low : high);
    return x;
}

static struct near near_tp(const struct config *c)
{
    return nearest(c, c->parallel.tp, 1024, tp_fits);
}

static int kv_fits(const struct config *c, int64_t v)
{
    return c->model.num_attention_heads % v == 0;
}

static struct near near_kv_heads(const struct config *c)
{
    return nearest(c, c->model.num_key_value_heads, c->model.num_attention_heads, kv_fits);
}

static int heads_fit(const struct config *c, int64_t v)
{
    int64_t d = c->model.hidden_size;

    return d % v == 0 && d / v % 2 == 0 && d / v <= 256;
}

static struct near near_heads(const struct config *c)
{
    return nearest(c, c->model.num_attention_heads, c->model.hidden_size, heads_fit);
}

static struct near near_multiples(int64_t v, int64_t of)
{
    struct near x;
    int64_t low = v / of * of;

    if (low > 0)
        snprintf(x.s, sizeof x.s, "%" PRId64 ", %" PRId64, low, low + of);
    else
        snprintf(x.s, sizeof x.s, "%" PRId64, of);
    return x;
}

/* ---- the rules ---- */

struct check {
    const struct config *c;
    const struct table_mark *marks; /* NULL: only what c keeps */
    struct complaints *out;
    const struct source *deck; /* by name only */
};

#define ON(...)         \
    (const int[])       \
    {                   \
        __VA_ARGS__, -1 \
    }

static int is_known(const struct check *x, int key)
{
    const struct table_key *k = &config_table.keys[key];

    if (x->marks && x->marks[key].bad)
        return 0;
    return k->def[0] != TABLE_REQUIRED_SHAPE[0] || *(const int64_t *)config_value(x->c, key) != 0;
}

static int all_known(const struct check *x, const int *on)
{
    for (; *on >= 0; on++)
        if (!is_known(x, *on))
            return 0;
    return 1;
}

__attribute__((format(printf, 3, 4))) static void refuse(const struct check *x, const int *on,
                                                         const char *fmt, ...)
{
    const struct table_key *k;
    char text[COMPLAINT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    while (*on >= 0 && !x->c->given[*on])
        on++;
    if (*on < 0) { /* all by default */
        complaint_add_line(x->out, x->deck, 0, 0, "%s", text);
        return;
    }
    k = &config_table.keys[*on];
    if (x->marks)
        complaint_add(x->out, x->marks[*on].source, x->marks[*on].at, "%s", text);
    else if (x->c->place[*on].line < 0)
        complaint_add_line(x->out, x->deck, 0, 0, "--set %s.%s: %s", k->group, k->name, text);
    else
        complaint_add_line(x->out, x->deck, x->c->place[*on].line, x->c->place[*on].column, "%s",
                           text);
}

/* Of a repeated group: no key of it was complained about. */
static int is_good(const struct check *x, const char *group)
{
    for (int i = 0; i < CONFIG_KEYS && x->marks; i++)
        if (x->marks[i].bad && strcmp(config_table.keys[i].group, group) == 0)
            return 0;
    return 1;
}

/* The byte at which a line, from 1, begins. */
static size_t line_at(const struct source *s, int line)
{
    size_t at = 0;

    for (; line > 1 && at < s->n; at++)
        line -= s->text[at] == '\n';
    return at;
}

__attribute__((format(printf, 3, 4))) static void refuse_line(const struct check *x, int line,
                                                              const char *fmt, ...)
{
    char text[COMPLAINT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (x->marks)
        complaint_add(x->out, x->deck, line_at(x->deck, line), "%s", text);
    else
        complaint_add_line(x->out, x->deck, line, 1, "%s", text);
}

void config_rules_run(const struct config *c, const struct table_mark *marks,
                      const struct source *deck, struct complaints *out)
{
    struct check x = { c, marks, out, deck };

#define RULE(condition, on, ...)           \
    if (all_known(&x, on) && !(condition)) \
        refuse(&x, on, __VA_ARGS__);
#define ONLY_WITH(key, condition, ...)                           \
    if (c->given[key] && all_known(&x, ON(key)) && !(condition)) \
        refuse(&x, ON(key), __VA_ARGS__);
#define EACH(group, condition, ...)                                   \
    for (int i = 0; i < c->n##group##s && is_good(&x, #group); i++) { \
        const struct config_##group *g = &c->group##s[i];             \
                                                                      \
        if (!(condition))                                             \
            refuse_line(&x, g->line, __VA_ARGS__);                    \
    }
#include "input/rules.def"
#undef RULE
#undef ONLY_WITH
#undef EACH
}

int config_key_is_idle(const struct config *c, int key)
{
#define RULE(condition, on, ...)
#define EACH(group, condition, ...)
#define ONLY_WITH(which, condition, ...) \
    if ((which) == key && !(condition))  \
        return 1;
#include "input/rules.def"
#undef RULE
#undef ONLY_WITH
#undef EACH
    return 0;
}

enum status config_check_rules(const struct config *c, struct err *e)
{
    struct complaints *out = mem_take(sizeof *out);
    struct source deck = { .name = c->deck };
    enum status st;

    config_rules_run(c, NULL, &deck, out);
    st = complaints_report(out, e);
    mem_give(out);
    return st;
}
