/* Which cores this process may use, and threads on them. One hardware thread of a core counts. */
#ifndef PARALLEL_CORES_H
#define PARALLEL_CORES_H
#include "base/types.h"

enum { CORES_MAX = 8192 };
struct cores {
    uint64_t word[CORES_MAX / 64];
};

/* Of the calling thread; empty where the system does not say. */
void cores_own(struct cores *set) LOCAL;
int cores_count(const struct cores *set) LOCAL;
/* The number of the n-th (from 0) core in the set, -1: none. */
int cores_nth(const struct cores *set, int n) LOCAL;
void cores_add(struct cores *set, const struct cores *more) LOCAL;
int cores_pin(int core) LOCAL; /* the calling thread; 0 on success */
#endif
