/* TAP from several ranks: rank 0 prints; a test holds if it holds on every rank. */
#ifndef TESTS_PARALLEL_RANKS_H
#define TESTS_PARALLEL_RANKS_H
#include "parallel/agree.h"
#include "parallel/comm_mpi.h"

#include "../tap.h"

static struct comm *ranks_world;

static inline void ranks_plan(struct comm *world, int n)
{
    ranks_world = world;
    tap_planned = n;
    if (world->rank == 0)
        tap_plan(n);
}

/* COLL(world) */
__attribute__((format(printf, 2, 3))) static inline int ranks_ok(int cond, const char *fmt, ...)
{
    char name[256];
    int all = !agree_any(ranks_world, !cond);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    if (!cond)
        printf("# rank %d: %s\n", ranks_world->rank, name);
    if (ranks_world->rank == 0)
        return tap_ok(all, "%s", name);
    tap_made++;
    tap_failed += !all;
    return all;
}
#endif
