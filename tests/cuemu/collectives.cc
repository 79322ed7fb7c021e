/* collectives.cc - barriers of a block, and operations of a warp: the last lane to come does the
 * work of all. */
#include "machine.h"

namespace cuemu
{
namespace
{

void wait_for_block(place where, bool predicate)
{
    me->predicate = predicate;
    me->where = where;
    me->st = state::at_block_barrier;
    TSAN(char *order = &running.order->block[me->block_barriers++ & 1]; __tsan_release(order);)
    fiber_yield();
    TSAN(__tsan_acquire(order);)
}

bool same(place a, place b)
{
    return a.line == b.line && a.file == b.file;
}

/* The lane that reads: as __shfl_*_sync's in groups of `width`; -1: its own value. */
int source_lane(shuffle kind, int n, int width)
{
    int lane = me->c.lane, in_group = lane & (width - 1), first = lane - in_group;

    switch (kind) {
    case shuffle::from:
        return first + (n & (width - 1));
    case shuffle::up:
        return in_group - n >= 0 ? lane - n : -1;
    case shuffle::down:
        return in_group + n < width ? lane + n : -1;
    case shuffle::across: /* an earlier group may be read, a later one not */
        return (lane ^ n) < first + width ? lane ^ n : -1;
    }
    return -1;
}

void complete_exchange(fiber *const *warp, unsigned mask)
{
    for (int i = 0; i < WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        fiber *f = warp[i];
        int from = f->source < 0 ? i : f->source;
        if (mask >> from & 1)
            raw_copy(f->taken, warp[from]->brought, f->bytes);
        else /* the value of a lane that does not take part is undefined */
            raw_fill(f->taken, 0xff, f->bytes);
    }
}

void complete_ballot(fiber *const *warp, unsigned mask)
{
    unsigned votes = 0;

    for (int i = 0; i < WARP; i++)
        if ((mask >> i & 1) && warp[i]->predicate)
            votes |= 1u << i;
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1)
            raw_copy(warp[i]->taken, &votes, sizeof votes);
}

} // namespace

void release_block_barrier()
{
    const fiber *first = nullptr;
    int votes = 0;

    for (int i = 0; i < running.threads; i++) {
        const fiber *f = running.fibers[i];
        if (f->st == state::done)
            continue;
        if (f->st != state::at_block_barrier)
            return;
        if (first && !same(first->where, f->where))
            stop("threads of one block meet at different barriers", f);
        first = f;
        votes += f->predicate;
    }
    running.votes = votes;
    for (int i = 0; i < running.threads; i++)
        if (running.fibers[i]->st == state::at_block_barrier)
            running.fibers[i]->st = state::ready;
}

void warp_meet(place where, unsigned mask, void (*complete)(fiber *const *warp, unsigned mask))
{
    int first = me->c.warp * WARP;
    fiber *const *warp = running.fibers + first;
    unsigned *waiting = &running.waiting[me->c.warp];

    me->where = where;
    me->mask = mask;
    if (!(mask >> me->c.lane & 1))
        stop("a lane outside its own mask takes part in a warp operation", me);
    if (mask & ~running.present[me->c.warp])
        stop(first + WARP > running.threads && mask >> (running.threads - first)
                 ? "the mask of a warp operation names a lane that the block does not have"
                 : "the mask of a warp operation names a lane that has exited",
             me);
    me->st = state::at_warp_operation;
    *waiting |= 1u << me->c.lane;
    if (mask & ~*waiting) {
        fiber_yield();
        return;
    }
    for (int i = 0; i < WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        if (warp[i]->mask != mask) {
            fiber_yield();
            return;
        }
        if (!same(warp[i]->where, where))
            stop("lanes of one warp meet at different warp operations", warp[i]);
    }
    if (complete)
        complete(warp, mask);
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1)
            warp[i]->st = state::ready;
    *waiting &= ~mask;
}

void block_barrier(place where)
{
    wait_for_block(where, false);
}

int block_count(place where, bool predicate)
{
    wait_for_block(where, predicate);
    return running.votes;
}

void warp_barrier(place where, unsigned mask)
{
    TSAN(char *order = &running.order->warp[me->c.warp][me->warp_barriers++ & 1];
         __tsan_release(order);)
    warp_meet(where, mask, nullptr);
    TSAN(__tsan_acquire(order);)
}

/* A shuffle does not order memory: the race detector is not told of it. */
void exchange(place where, unsigned mask, void *value, size_t bytes, shuffle kind, int n, int width)
{
    me->where = where;
    if (width < 1 || width > WARP || (width & (width - 1)))
        stop("the width of a shuffle is not 1, 2, 4, 8, 16 or 32", me);
    me->source = source_lane(kind, n, width);
    me->bytes = bytes;
    raw_copy(me->brought, value, bytes);
    warp_meet(where, mask, complete_exchange);
    raw_copy(value, me->taken, bytes);
}

unsigned ballot(place where, unsigned mask, bool predicate)
{
    unsigned votes;

    me->predicate = predicate;
    warp_meet(where, mask, complete_ballot);
    raw_copy(&votes, me->taken, sizeof votes);
    return votes;
}

unsigned active_mask()
{
    return running.present[me->c.warp];
}

} // namespace cuemu
