/* Shapes of launches. What a grid of these changes is who computes an element, never its value. */
#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H
#include "cuda/queue.h"

enum { WARP = 32, FLAT_THREADS = 256, BLOCKS_PER_SM = 8 };

/* The next power of two. */
static inline int round_up_power(int64_t n, int limit)
{
    int power = 1;
    while (power < n && power < limit) {
        power *= 2;
    }
    return power;
}

/* Blocks of FLAT_THREADS for n pieces of work that a grid-stride loop walks. */
static inline dim3 flat_grid(const struct queue *q, int64_t n)
{
    return dim3((unsigned)max_i64(
        1, min_i64(ceil_div(n, FLAT_THREADS), (int64_t)q->sm_count * BLOCKS_PER_SM)));
}

/* Threads over a matrix: x over packs of n columns, y over rows in a grid-stride loop. */
struct tiling {
    dim3 grid, block;
};
static inline struct tiling tile_rows(const struct queue *q, int64_t rows, int64_t columns, int n)
{
    struct tiling t;
    int64_t packs = ceil_div(columns, n), tiles;
    int lanes = round_up_power(packs, FLAT_THREADS);
    while (lanes > WARP && ceil_div(packs, lanes) * lanes * 8 > packs * 9) {
        lanes /= 2; /* at most an eighth of the lanes idle */
    }
    tiles = ceil_div(packs, lanes);
    t.block = dim3((unsigned)lanes, (unsigned)(FLAT_THREADS / lanes));
    t.grid =
        dim3((unsigned)tiles,
             (unsigned)max_i64(1, min_i64(min_i64(ceil_div(rows, (int64_t)t.block.y), 65535),
                                          ceil_div((int64_t)q->sm_count * BLOCKS_PER_SM, tiles))));
    return t;
}

#endif
