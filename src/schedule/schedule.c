/* Building and freeing: order -> lists -> slots -> proof. */
#include "base/arena.h"
#include "schedule/lists.h"
#include <stdio.h>
#include <string.h>

/* s has pp and chunks: the tables of stages, and room for all that is per rank. */
static void place_stages(struct schedule *s)
{
    int stages = s->pp * s->chunks;

    s->stage_rank = mem_take((size_t)stages * sizeof *s->stage_rank);
    s->stage_chunk = mem_take((size_t)stages * sizeof *s->stage_chunk);
    s->stage_of = mem_take((size_t)stages * sizeof *s->stage_of);
    s->n = mem_take((size_t)s->pp * sizeof *s->n);
    s->list = mem_take((size_t)s->pp * sizeof *s->list);
    s->slots = mem_take((size_t)s->pp * sizeof *s->slots);
    s->grads = mem_take((size_t)s->pp * sizeof *s->grads);
    s->stashes = mem_take((size_t)s->pp * sizeof *s->stashes);
    for (int i = 0; i < stages; i++) {
        s->stage_rank[i] = i % s->pp;
        s->stage_chunk[i] = i / s->pp;
        s->stage_of[s->stage_rank[i] * s->chunks + s->stage_chunk[i]] = i;
    }
}

void schedule_free(struct schedule *s)
{
    void *all[] = {
        s->stage_rank, s->stage_chunk, s->stage_of, s->n,      s->list ? s->list[0] : NULL,
        s->list,       s->slots,       s->grads,    s->stashes
    };

    for (int i = 0; i < COUNT_OF(all); i++)
        mem_give(all[i]);
    *s = (struct schedule){ 0 };
}

/* The most activations that an order holds at once, when a slot is taken by F and left by B or W.
 */
static int live_of(const struct step *order, int n)
{
    int live = 0, most = 0;

    for (int i = 0; i < n; i++) {
        live += (order[i].kind == ACT_F) - (order[i].kind == ACT_B || order[i].kind == ACT_W);
        if (most < live)
            most = live;
    }
    return most;
}

/* train: NULL, or the schedule whose slots the forward-only list should make do with. */
static enum status make(struct schedule *s, const struct schedule_kind *kind,
                        const struct schedule *train, struct err *e)
{
    int n = s->mbs * s->chunks * kind->per_mb;
    struct step *order = mem_take((size_t)n * s->pp * sizeof *order);
    int *cap = mem_take((size_t)s->pp * sizeof *cap);
    enum status st;

    place_stages(s);
    for (int r = 0; r < s->pp; r++) {
        kind->generate(s, r, order + (int64_t)r * n);
        cap[r] = train ? (int)min_i64(2, train->slots[r])
                       : live_of(order + (int64_t)r * n, n) + (r > 0 ? kind->spare : 0);
    }
    st = schedule_lower(s, order, n, cap, e);
    if (st == OK)
        st = schedule_place_slots(s, e);
    mem_give(order);
    mem_give(cap);
    if (st != OK)
        schedule_free(s);
    return st;
}

static enum status check_sizes(const char *name, int pp, int chunks, int mbs, struct err *e)
{
    if (pp < 1 || chunks < 1 || mbs < 1)
        return err_set(
            e, E_INPUT,
            "schedule %s: pp (%d), virtual_stages (%d) and the number of micro-batches (%d) "
            "must be at least 1",
            name, pp, chunks, mbs);
    if (chunks > SCHEDULE_CHUNKS_MAX || (int64_t)pp * chunks > SCHEDULE_STAGES_MAX)
        return err_set(
            e, E_INPUT,
            "schedule %s: %lld stages (pp = %d, virtual_stages = %d); at most %d, and %d per rank",
            name, (long long)pp * chunks, pp, chunks, SCHEDULE_STAGES_MAX, SCHEDULE_CHUNKS_MAX);
    if ((int64_t)mbs * chunks > INT32_MAX / 8)
        return err_set(e, E_INPUT,
                       "schedule %s: %d micro-batches in %d chunks are too many; choose a larger "
                       "micro_batch_size",
                       name, mbs, chunks);
    return OK;
}

static const struct schedule_kind *find_kind(const char *name)
{
    for (const struct schedule_kind *k = schedule_kinds; k->name; k++)
        if (!strcmp(k->name, name))
            return k;
    return NULL;
}

enum status schedule_make(struct schedule *s, const char *name, int pp, int chunks, int mbs,
                          struct err *e)
{
    const struct schedule_kind *kind = find_kind(name);
    enum status st;

    *s = (struct schedule){ .pp = pp, .chunks = chunks, .mbs = mbs };
    if (!kind)
        return err_set(e, E_INPUT, "no schedule \"%s\"; there are gpipe, 1f1b, zb-h1, interleaved",
                       name);
    if ((st = check_sizes(name, pp, chunks, mbs, e)) != OK)
        return st;
    if (kind->chunked != (chunks > 1))
        return err_set(
            e, E_INPUT,
            kind->chunked
                ? "schedule %s needs virtual_stages of at least 2, not %d; with 1 it is 1f1b"
                : "schedule %s has one stage per rank, not virtual_stages = %d; choose interleaved",
            name, chunks);
    if (kind->chunked && mbs % pp != 0)
        return err_set(
            e, E_INPUT,
            "schedule %s: pp = %d does not divide the %d micro-batches of a replica; nearest that "
            "work: %d, %d",
            name, pp, mbs, mbs < pp ? pp : mbs / pp * pp, (mbs < pp ? 2 : mbs / pp + 1) * pp);
    snprintf(s->name, sizeof s->name, "%s", name);
    return make(s, kind, NULL, e);
}

static enum status prove(struct schedule *s, struct err *e)
{
    struct schedule_report r = schedule_simulate(s, NULL);

    if (r.ok)
        return OK;
    err_set(e, E_BUG, "schedule %s, pp %d, %d chunks, %d micro-batches, is wrong: %s", s->name,
            s->pp, s->chunks, s->mbs, r.why);
    schedule_free(s);
    return E_BUG;
}

enum status schedule_build(struct schedule *s, const char *name, int pp, int chunks, int mbs,
                           struct err *e)
{
    enum status st = schedule_make(s, name, pp, chunks, mbs, e);

    return st == OK ? prove(s, e) : st;
}

enum status schedule_build_forward(struct schedule *f, const struct schedule *s, int mbs,
                                   struct err *e)
{
    enum status st = check_sizes(s->name, s->pp, s->chunks, mbs, e);

    *f = (struct schedule){ .pp = s->pp, .chunks = s->chunks, .mbs = mbs, .forward_only = 1 };
    if (st != OK)
        return st;
    snprintf(f->name, sizeof f->name, "%s", s->name);
    st = make(f, &schedule_forward, s, e);
    return st == OK ? prove(f, e) : st;
}
