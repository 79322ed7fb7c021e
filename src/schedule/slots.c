/* Slots: each lifetime of a list takes the lowest index that is free. */
#include "base/arena.h"
#include "schedule/lists.h"

struct pool {
    uint8_t *used; /* [SCHEDULE_SLOTS_MAX] */
    int16_t *held; /* [chunks, mbs] */
    int low, size; /* no free index is below low; size: highest taken + 1 */
};

struct placing {
    struct pool act, grad, stash;
    const struct schedule *s;
    int rank, full;
};

static int64_t item(const struct placing *p, int chunk, int mb)
{
    return (int64_t)chunk * p->s->mbs + mb;
}

static int16_t take(struct placing *p, struct pool *pool, int64_t at)
{
    while (pool->low < SCHEDULE_SLOTS_MAX && pool->used[pool->low])
        pool->low++;
    if (pool->low == SCHEDULE_SLOTS_MAX) {
        p->full = 1;
        return pool->held[at] = -1;
    }
    pool->used[pool->low] = 1;
    if (pool->size <= pool->low)
        pool->size = pool->low + 1;
    return pool->held[at] = (int16_t)pool->low;
}

static int16_t give(struct pool *pool, int64_t at)
{
    int16_t i = pool->held[at];

    if (i >= 0) {
        pool->used[i] = 0;
        pool->low = (int)min_i64(pool->low, i);
    }
    return i;
}

static void place_move(struct placing *p, struct action *a)
{
    int stage =
        p->s->stage_of[p->rank * p->s->chunks + a->chunk] + (a->kind == ACT_MOVE_F ? 1 : -1);
    int64_t from = item(p, a->chunk, a->mb), to = item(p, p->s->stage_chunk[stage], a->mb);

    if (a->kind == ACT_MOVE_F) {
        a->to_slot = take(p, &p->act, to);
        a->slot = p->s->forward_only ? give(&p->act, from) : p->act.held[from];
    } else {
        a->to_grad = take(p, &p->grad, to);
        a->grad = give(&p->grad, from);
    }
}

static void place_forward(struct placing *p, struct action *a, int64_t at)
{
    int train = !p->s->forward_only;

    a->slot = a->first ? take(p, &p->act, at) : p->act.held[at];
    if (a->last && train)
        a->grad = take(p, &p->grad, at);
    if (a->last && !train)
        give(&p->act, at);
}

static void place(struct placing *p, struct action *a)
{
    int64_t at = item(p, a->chunk, a->mb);

    switch ((enum act)a->kind) {
    case ACT_F:
        place_forward(p, a, at);
        break;
    case ACT_B:
    case ACT_I:
        a->slot = a->kind == ACT_B ? give(&p->act, at) : p->act.held[at];
        a->grad = a->first ? give(&p->grad, at) : p->grad.held[at];
        a->stash = a->kind == ACT_I ? take(p, &p->stash, at) : -1;
        break;
    case ACT_W:
        a->slot = give(&p->act, at);
        a->stash = give(&p->stash, at);
        break;
    case ACT_SEND_F:
        a->slot = p->s->forward_only ? give(&p->act, at) : p->act.held[at];
        break;
    case ACT_RECV_F:
        a->slot = take(p, &p->act, at);
        break;
    case ACT_SEND_B:
        a->grad = give(&p->grad, at);
        break;
    case ACT_RECV_B:
        a->grad = take(p, &p->grad, at);
        break;
    case ACT_MOVE_F:
    case ACT_MOVE_B:
        place_move(p, a);
        break;
    case ACT_REDUCE:
    case ACT_KINDS:
        break;
    }
}

enum status schedule_place_slots(struct schedule *s, struct err *e)
{
    size_t items = (size_t)s->chunks * s->mbs;
    size_t room = (size_t)min_i64(SCHEDULE_SLOTS_MAX, (int64_t)items);
    struct placing p = { .s = s };
    struct pool *pools[] = { &p.act, &p.grad, &p.stash };
    int *sizes[] = { s->slots, s->grads, s->stashes };

    for (int i = 0; i < COUNT_OF(pools); i++) {
        pools[i]->used = mem_take(room);
        pools[i]->held = mem_take(items * sizeof *pools[i]->held);
    }
    for (int r = 0; r < s->pp && !p.full; r++) {
        p.rank = r;
        for (int i = 0; i < s->n[r]; i++)
            place(&p, &s->list[r][i]);
        for (int i = 0; i < COUNT_OF(pools); i++) {
            sizes[i][r] = pools[i]->size;
            pools[i]->low = pools[i]->size = 0;
        }
    }
    for (int i = 0; i < COUNT_OF(pools); i++) {
        mem_give(pools[i]->used);
        mem_give(pools[i]->held);
    }
    if (p.full)
        return err_set(
            e, E_INPUT,
            "schedule %s with %d micro-batches keeps more than %d activations on a rank; "
            "choose another schedule or a larger micro_batch_size",
            s->name, s->mbs, SCHEDULE_SLOTS_MAX);
    return OK;
}
