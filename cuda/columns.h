/* Column sums of a tall matrix, added to float32: a first kernel sums slabs of rows into the
 * queue's partial memory, columns_finish adds the slabs up. Both orders depend on the matrix's
 * shape only. */
#ifndef CUDA_COLUMNS_H
#define CUDA_COLUMNS_H
#include "cuda/launch.h"
#include "cuda/pack.h"

struct columns {
    int lanes; /* threads along a row, of a pack each; blockDim.y walk down the rows of a slab */
    int slabs;
    dim3 grid, block; /* x: tiles of lanes packs, y: slabs */
};

/* T steps of `each` rows, packs of n columns. */
static inline struct columns columns_plan(const struct queue *q, int64_t T, int64_t each,
                                          int64_t columns, int n)
{
    enum { ROWS = 4, BLOCKS = 1024 }; /* at least so many rows a thread; about so many blocks */
    struct columns c;
    int64_t packs = ceil_div(columns, n), tiles, slabs;
    c.lanes = round_up_power(packs, WARP);
    c.block = dim3((unsigned)c.lanes, (unsigned)(FLAT_THREADS / c.lanes));
    tiles = ceil_div(packs, c.lanes);
    slabs = min_i64(T, ceil_div(T * each, (int64_t)c.block.y * ROWS));
    slabs = min_i64(slabs, max_i64(1, BLOCKS / tiles));
    slabs = min_i64(slabs, (int64_t)(q->partial_bytes / sizeof(float)) / columns);
    BUG_IF(slabs < 1);
    c.slabs = (int)slabs;
    c.grid = dim3((unsigned)tiles, (unsigned)slabs);
    return c;
}

/* Steps first .. end-1 are this block's slab. */
struct slab {
    int64_t first, end;
};
static __device__ __forceinline__ struct slab columns_slab(int64_t T)
{
    return { T * (int64_t)blockIdx.y / gridDim.y, T * ((int64_t)blockIdx.y + 1) / gridDim.y };
}

/* The slab's sums from those of each thread: a pack's columns from `column`. rows: FLAT_THREADS * N
 * in shared memory. Called by all threads. */
template <int N>
static __device__ __forceinline__ void columns_store(float *partial, const floats<N> &sum,
                                                     int64_t columns, float *rows)
{
    int wide = (int)blockDim.x * N, self = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    int64_t column = (int64_t)blockIdx.x * wide + self;
    float total = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        rows[threadIdx.y * wide + threadIdx.x * N + i] = sum.x[i];
    }
    __syncthreads();
    if (self < wide && column < columns) {
        for (int y = 0; y < (int)blockDim.y; y++) {
            total += rows[y * wide + self];
        }
        partial[blockIdx.y * columns + column] = total;
    }
}

/* to[0 .. columns-1] += the slabs */
void columns_finish(struct queue *q, float *to, const struct columns *c, int64_t columns) LOCAL;
#endif
