/* Tiles of attention on tensor cores. A warp owns MT * 16 rows of a product; row m*16 + lane/4 +
 * 8*i and columns 8*j + lane%4*2, +1 are elements [m][j][2*i], [2*i + 1] of its accumulators. Tiles
 * in shared memory have rows of D elements, D + 8 apart: eight rows of 16 bytes fall into different
 * banks. T is bf16 or f16; sums are float. */
#ifndef CUDA_ATTENTION_TILE_H
#define CUDA_ATTENTION_TILE_H
#include "cuda/attention.h"

enum { TILE_PAD = 8 };

static __device__ __forceinline__ void tile_mma(float (&d)[4], const uint32_t (&a)[4],
                                                const uint32_t (&b)[2], bf16)
{
    mma_m16n8k16_bf16(d, a, b);
}
static __device__ __forceinline__ void tile_mma(float (&d)[4], const uint32_t (&a)[4],
                                                const uint32_t (&b)[2], f16)
{
    mma_m16n8k16_f16(d, a, b);
}

template <class T> static __device__ __forceinline__ uint32_t tile_pack(float a, float b)
{
    const float pair[2] = { a, b };
    return element<T>::narrow(pair);
}

/* Rows first .. first+rows-1 of D elements from `column` on of an operand in global memory, to
 * shared memory, asynchronously; zeros up to ROWS. */
template <class T, int D, int ROWS, int THREADS>
static __device__ __forceinline__ void tile_load(T *tile, const void *operand, int64_t ld,
                                                 int64_t first, int64_t column, int rows)
{
    enum { PIECES = D / 8, STEP = THREADS / PIECES }; /* pieces of 16 bytes in a row */
    const int row = (int)threadIdx.x / PIECES, at = (int)threadIdx.x % PIECES * 8;
    const T *any = static_cast<const T *>(operand), *from = any + (first + row) * ld + column + at;
    tile += row * (D + TILE_PAD) + at;
    rows -= row;
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP) {
        cp_async16(tile + i * (D + TILE_PAD), i < rows ? from : any, i < rows);
        from += STEP * ld;
    }
}

template <int MT, int N> static __device__ __forceinline__ void tile_clear(float (&x)[MT][N][4])
{
#pragma unroll
    for (int i = 0; i < MT * N * 4; i++) {
        x[i / (N * 4)][i / 4 % N][i % 4] = 0;
    }
}

/* s [MT*16, N*8] = a [MT*16, D] b^T, b [N*8, D]; a: the warp's own rows */
template <class T, int D, int MT, int N>
static __device__ __forceinline__ void tile_scores(float (&s)[MT][N][4], const T *a, const T *b)
{
    enum { LD = D + TILE_PAD };
    const int lane = (int)threadIdx.x & 31;
    a += (lane & 15) * LD + (lane >> 4) * 8;
    b += ((lane & 7) + (lane >> 4) * 8) * LD + (lane >> 3 & 1) * 8;
    tile_clear(s);
#pragma unroll 2
    for (int k = 0; k < D; k += 16) {
        uint32_t left[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) {
            ldmatrix_x4(left[m], a + m * 16 * LD + k);
        }
#pragma unroll
        for (int n = 0; n < N / 2; n++) {
            uint32_t r[4];
            ldmatrix_x4(r, b + n * 16 * LD + k);
            const uint32_t low[2] = { r[0], r[1] }, high[2] = { r[2], r[3] };
#pragma unroll
            for (int m = 0; m < MT; m++) {
                tile_mma(s[m][2 * n], left[m], low, T());
                tile_mma(s[m][2 * n + 1], left[m], high, T());
            }
        }
    }
}

/* sum [MT*16, D] += p b, p [MT*16, N*8] rounded to T, b [N*8, D] */
template <class T, int D, int MT, int N>
static __device__ __forceinline__ void tile_add(float (&sum)[MT][D / 8][4],
                                                const float (&p)[MT][N][4], const T *b)
{
    enum { LD = D + TILE_PAD };
    const int lane = (int)threadIdx.x & 31;
    b += (lane & 15) * LD + (lane >> 4) * 8;
#pragma unroll
    for (int n = 0; n < N / 2; n++) {
        uint32_t left[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float(&x)[4] = p[m][2 * n + i / 2];
                left[m][i] = tile_pack<T>(x[i % 2 * 2], x[i % 2 * 2 + 1]);
            }
        }
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
            uint32_t r[4];
            ldmatrix_x4_trans(r, b + n * 16 * LD + d * 16);
            const uint32_t low[2] = { r[0], r[1] }, high[2] = { r[2], r[3] };
#pragma unroll
            for (int m = 0; m < MT; m++) {
                tile_mma(sum[m][2 * d], left[m], low, T());
                tile_mma(sum[m][2 * d + 1], left[m], high, T());
            }
        }
    }
}

/* row [8 N] = take * x (+ keep * row, if more): half i of a warp's accumulators */
template <class T, int N>
static __device__ __forceinline__ void tile_store(T *row, const float (&x)[N][4], int i, int more,
                                                  float keep, float take)
{
    uint32_t *pairs = reinterpret_cast<uint32_t *>(row) + (threadIdx.x & 3);
#pragma unroll
    for (int j = 0; j < N; j++) {
        float a = take * x[j][2 * i], b = take * x[j][2 * i + 1];
        if (more) {
            float old[2];
            element<T>::widen(old, pairs[j * 4]);
            a += keep * old[0];
            b += keep * old[1];
        }
        pairs[j * 4] = tile_pack<T>(a, b);
    }
}

/* The warp's rows of a tile of `rows` rows at `to`: += if more; row: the warp's first. */
template <class T, int D, int MT>
static __device__ __forceinline__ void tile_store_rows(const float (&x)[MT][D / 8][4], T *to,
                                                       int64_t ld, int row, int rows, int more,
                                                       float take)
{
    row += ((int)threadIdx.x & 31) / 4;
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        if (row + n * 8 < rows) {
            tile_store(to + (row + n * 8) * ld, x[n / 2], n % 2, more, 1, take);
        }
    }
}
#endif
