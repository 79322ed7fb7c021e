#include "train/sources.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

char *sources_identity(const struct sources *s)
{
    const struct mixture *m = &s->train;
    size_t room = (size_t)m->nsources * (MIXTURE_NAME + 34) + 1, n = 0;
    char *text = mem_take(room);

    for (int i = 0; i < m->nsources; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s%s%s", i ? " " : "", m->name[i].text,
                              m->name[i].text[0] ? "=" : "", m->source[i].hash);
    return text;
}

/* The hash that an identity has for a name: its 32 digits, or NULL. */
static const char *hash_in(const char *identity, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = identity; *p; p += strcspn(p, " "), p += *p == ' ') {
        size_t length = strcspn(p, " ");

        if (n == 0 && length == 32)
            return p;
        if (n > 0 && length == n + 33 && strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
    }
    return NULL;
}

/* The stages that the first `steps` updates took from: their number. */
static int used_stages(const struct config *c, int64_t steps)
{
    int n = 1;

    while (n < c->nstages && c->stages[n].start_step <= steps)
        n++;
    return steps > 0 ? n : 0;
}

static int64_t start_of(const struct config *c, int k)
{
    return c->nstages ? c->stages[k].start_step : 1;
}

/* Units of the source of this name in stage k of an input; 0: not there. */
static int units_of(const struct config *c, int k, const char *name)
{
    double weight[CONFIG_MANY], sum = 0;
    int units[CONFIG_MANY], order[CONFIG_MANY], n = c->nsources;

    if (n == 0)
        return name[0] ? 0 : INTERLEAVE_UNIT;
    for (int i = 0; i < n; i++) { /* in the order of names, as the mixture has them */
        int at = i;

        for (; at > 0 && strcmp(c->sources[order[at - 1]].name, c->sources[i].name) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const struct config_reals *w = c->nstages ? &c->stages[k].weights : NULL;

        weight[i] = w && w->n ? w->v[order[i]] : c->sources[order[i]].weight;
        sum += weight[i];
    }
    if (!(sum > 0) || interleave_round(weight, n, units) >= 0)
        return 0;
    for (int i = 0; i < n; i++)
        if (strcmp(c->sources[order[i]].name, name) == 0)
            return units[i];
    return 0;
}

static enum status refuse(int64_t steps, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static enum status refuse(int64_t steps, struct err *e, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(e, E_INPUT,
                   "%s; what steps 1 to %" PRId64
                   " took is fixed: keep it, and let a &stage with start_step = %" PRId64
                   " or more change what follows",
                   text, steps, steps + 1);
}

static int is_there(const struct sources *s, const char *name)
{
    for (int i = 0; i < s->train.nsources; i++)
        if (strcmp(s->train.name[i].text, name) == 0)
            return 1;
    return 0;
}

/* In stage k of both inputs, which begins at the same step. */
static enum status compare_source(const struct sources *s, const struct config *now,
                                  const struct config *old, const char *name, const char *identity,
                                  int k, int64_t steps, struct err *e)
{
    int a = units_of(old, k, name), b = units_of(now, k, name);
    const char *before = hash_in(identity, name);
    char what[MIXTURE_NAME + 16] = "the training data";

    if (name[0])
        snprintf(what, sizeof what, "&source '%s'", name);
    if (a > 0 && !is_there(s, name))
        return refuse(steps, e, "%s is not in the input any more", name[0] ? what : "data.train");
    if (a != b)
        return refuse(steps, e,
                      "%s: it had %d/65536 of the samples from step %" PRId64 " on, now it has %d",
                      what, a, start_of(now, k), b);
    for (int i = 0; i < s->train.nsources && a > 0; i++)
        if (strcmp(s->train.name[i].text, name) == 0 &&
            (!before || strncmp(before, s->train.source[i].hash, 32)))
            return err_set(e, E_INPUT,
                           "%s is not the one it was written with (hash %.32s, now %s); what "
                           "steps 1 to %" PRId64 " took is fixed: name the files of then",
                           what, before ? before : "unknown", s->train.source[i].hash, steps);
    return OK;
}

static enum status compare_stage(const struct sources *s, const struct config *now,
                                 const struct config *old, const char *identity, int k,
                                 int64_t steps, struct err *e)
{
    int64_t a = sources_length(old, start_of(old, k)), b = sources_length(now, start_of(now, k));
    enum status st = OK;

    if (start_of(old, k) != start_of(now, k))
        return refuse(steps, e, "the stage from step %" PRId64 " now begins at step %" PRId64,
                      start_of(old, k), start_of(now, k));
    if (a != b)
        return refuse(steps, e,
                      "the stage from step %" PRId64 " had sequence_length = %" PRId64
                      ", now it has %" PRId64,
                      start_of(old, k), a, b);
    for (int i = 0; i < old->nsources && st == OK; i++)
        if (!is_there(s, old->sources[i].name))
            st = compare_source(s, now, old, old->sources[i].name, identity, k, steps, e);
    if (st == OK && old->nsources == 0)
        st = compare_source(s, now, old, "", identity, k, steps, e);
    for (int i = 0; i < s->train.nsources && st == OK; i++)
        st = compare_source(s, now, old, s->train.name[i].text, identity, k, steps, e);
    return st;
}

enum status sources_compare(const struct sources *s, const struct config *now, const char *stored,
                            const char *identity, int64_t steps, struct err *e)
{
    struct config *old = mem_take(sizeof *old);
    enum status st = config_read_stored(old, stored, e);
    int n = st == OK ? used_stages(old, steps) : 0;

    if (st == OK && used_stages(now, steps) != n)
        st = refuse(steps, e, "there were %d stages in these steps, now there are %d", n,
                    used_stages(now, steps));
    for (int k = 0; k < n && st == OK; k++)
        st = compare_stage(s, now, old, identity, k, steps, e);
    mem_give(old);
    return st;
}
