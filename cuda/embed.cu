/* Embedding, and rows put apart. The embedding's gradient sorts the tokens of a call by row,
 * stably, in one block; then each row's tokens are added in ascending order by the threads that own
 * the row's columns. */
#include "cuda/launch.h"
#include "cuda/pack.h"
#include "cuda/reduce.h"
#include "cuda/slots.h"

template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    embed_kernel(T *__restrict__ x, const T *__restrict__ w, const int32_t *__restrict__ ids,
                 int64_t first, int64_t rows, int64_t tokens, int64_t D, bool wide_x, bool wide_w)
{
    enum { N = pack_size<T> };
    const int64_t d = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N, left = D - d;
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < tokens;
         t += (int64_t)gridDim.y * blockDim.y) {
        const int64_t row = ids[t] - first;
        const bool here = row >= 0 && row < rows;
        pack_store<N>(x + t * D + d,
                      pack_load<N>(w + (here ? row : 0) * D + d, here ? left : 0, wide_w), left,
                      wide_x);
    }
}

extern "C" void cuda_embed(struct queue *q, struct operand x, struct operand w, dptr ids,
                           int64_t first, int64_t rows, int64_t T, int64_t D)
{
    if (T == 0) {
        return;
    }
    with_element(x.t, "embed", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, D, pack_size<E>);
        LAUNCH(embed_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(x), elements<E>(w),
               values<int32_t>(ids), first, rows, T, D, is_wide(x, D), is_wide(w, D));
    });
    cuda_check(cudaGetLastError(), "embed");
}

template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    put_rows_kernel(T *__restrict__ y, int64_t ldy, const T *__restrict__ x, int64_t ldx,
                    const int32_t *__restrict__ at, int64_t tokens, int64_t n, bool wide_y,
                    bool wide_x)
{
    enum { N = pack_size<T> };
    const int64_t d = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N, left = n - d;
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < tokens;
         t += (int64_t)gridDim.y * blockDim.y) {
        const int64_t row = at[t];
        if (row >= 0) {
            pack_store<N>(y + row * ldy + d, pack_load<N>(x + t * ldx + d, left, wide_x), left,
                          wide_y);
        }
    }
}

extern "C" void cuda_put_rows(struct queue *q, struct operand dst, int64_t ldd, struct operand src,
                              int64_t lds, dptr at, int64_t T, int64_t n)
{
    if (T == 0) {
        return;
    }
    with_element(src.t, "put_rows", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, n, pack_size<E>);
        LAUNCH(put_rows_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(dst), ldd,
               elements<E>(src), lds, values<int32_t>(at), T, n, is_wide(dst, ldd),
               is_wide(src, lds));
    });
    cuda_check(cudaGetLastError(), "put_rows");
}

/* ---- sorting ---- */
enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, SORT_WARPS = 16, TOKENS_PER_WARP = 256 };

struct token {
    uint32_t row, t; /* row: `rows` when it is not here */
};

/* The lanes among `live` that hold this lane's digit. */
static __device__ __forceinline__ unsigned digit_peers(unsigned digit, bool live)
{
    unsigned peers = __ballot_sync(0xffffffffu, live);
#pragma unroll
    for (int bit = 0; bit < DIGIT_BITS; bit++) {
        const unsigned ones = __ballot_sync(0xffffffffu, digit >> bit & 1);
        peers &= digit >> bit & 1 ? ones : ~ones;
    }
    return peers;
}

/* counts [DIGITS][warps] become where each warp's tokens of a digit begin: by digit, then warp. */
static __device__ __forceinline__ void digit_starts(unsigned *counts, unsigned *totals, int warps)
{
    for (int d = (int)threadIdx.x; d < DIGITS; d += (int)blockDim.x) {
        unsigned before = 0;
        for (int w = 0; w < warps; w++) {
            const unsigned n = counts[d * warps + w];
            counts[d * warps + w] = before;
            before += n;
        }
        totals[d] = before;
    }
    __syncthreads();
    if (threadIdx.x < WARP) { /* each lane sums DIGITS / WARP digits, then the lanes are summed */
        enum { EACH = DIGITS / WARP };
        unsigned mine = 0, before;
        for (int i = 0; i < EACH; i++) {
            mine += totals[threadIdx.x * EACH + i];
        }
        before = mine;
        for (int apart = 1; apart < WARP; apart *= 2) {
            const unsigned other = __shfl_up_sync(0xffffffffu, before, apart);
            before += (int)threadIdx.x >= apart ? other : 0;
        }
        before -= mine;
        for (int i = 0; i < EACH; i++) {
            const unsigned n = totals[threadIdx.x * EACH + i];
            totals[threadIdx.x * EACH + i] = before;
            before += n;
        }
    }
    __syncthreads();
}

/* One stable pass over the digit at `shift`: to = from, by digit. Every warp owns a run of
 * tokens. */
static __device__ void sort_pass(struct token *to, const struct token *from, int n, int shift,
                                 unsigned *counts, unsigned *totals)
{
    const int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP;
    const int lane = (int)threadIdx.x % WARP;
    const int each = (n + warps * WARP - 1) / (warps * WARP) * WARP;
    const int first = warp * each, end = min(first + each, n);
    for (int i = (int)threadIdx.x; i < DIGITS * warps; i += (int)blockDim.x) {
        counts[i] = 0;
    }
    __syncthreads();
    for (int i = first + lane; i < end; i += WARP) {
        atomicAdd(&counts[(from[i].row >> shift) % DIGITS * warps + warp], 1u);
    }
    __syncthreads();
    digit_starts(counts, totals, warps);
    for (int base = first; base < end; base += WARP) {
        const bool live = base + lane < end;
        const struct token mine = live ? from[base + lane] : token{ 0, 0 };
        const unsigned digit = (mine.row >> shift) % DIGITS;
        const unsigned peers = digit_peers(digit, live), before = peers & ((1u << lane) - 1);
        unsigned *const count = &counts[digit * warps + warp];
        const unsigned start = *count;
        __syncwarp();
        if (live) {
            to[totals[digit] + start + __popc(before)] = mine;
        }
        if (live && before == 0) {
            *count = start + __popc(peers);
        }
        __syncwarp();
    }
    __syncthreads();
}

/* tokens [2][n]: ids as rows, sorted by row, then by t; passes: digits of `rows`. The result is in
 * the first half when passes is even. */
static __global__ void __launch_bounds__(SORT_WARPS *WARP)
    sort_kernel(struct token *tokens, const int32_t *__restrict__ ids, int64_t first, int64_t rows,
                int n, int passes)
{
    SHARED_ARRAY(unsigned, counts, DIGITS *SORT_WARPS);
    SHARED_ARRAY(unsigned, totals, DIGITS);
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) {
        const int64_t row = ids[i] - first;
        tokens[i] = token{ (uint32_t)(row >= 0 && row < rows ? row : rows), (uint32_t)i };
    }
    __syncthreads();
    for (int pass = 0; pass < passes; pass++) {
        const int odd = pass % 2;
        sort_pass(tokens + (int64_t)(1 - odd) * n, tokens + (int64_t)odd * n, n, pass * DIGIT_BITS,
                  counts, totals);
    }
}

/* ---- sums ---- */
enum { AHEAD = 8 }; /* tokens in flight */

/* The thread at a row's first token adds all of them to its columns of the row. */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    embed_grad_kernel(float *__restrict__ dw, const T *__restrict__ dx,
                      const struct token *__restrict__ tokens, int64_t rows, int n, int64_t D,
                      bool wide_w, bool wide_x)
{
    enum { N = pack_size<T> };
    const int64_t d = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * N, left = D - d;
    const int from = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    const uint32_t row = from < n ? tokens[from].row : (uint32_t)rows;
    if (row == rows || (from > 0 && tokens[from - 1].row == row)) {
        return;
    }
    floats<N> sum = pack_widen(pack_load<N>(dw + row * D + d, left, wide_w));
    bool more = true;
    for (int i = from; more; i += AHEAD) {
        pack<T, N> in[AHEAD];
        bool mine[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const struct token next = tokens[min(i + u, n - 1)];
            more = mine[u] = i + u < n && next.row == row;
            in[u] = pack_load<N>(dx + next.t * D + d, mine[u] ? left : 0, wide_x);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const floats<N> x = pack_widen(in[u]);
#pragma unroll
            for (int k = 0; k < N; k++) {
                sum.x[k] = mine[u] ? sum.x[k] + x.x[k] : sum.x[k];
            }
        }
    }
    pack_store<N>(dw + row * D + d, pack_narrow<float>(sum), left, wide_w);
}

static int sort_passes(int64_t rows)
{
    int passes = 1;
    while (rows >> passes * DIGIT_BITS) {
        passes++;
    }
    return passes;
}

/* Tokens whose sort fits the queue's partial memory. */
template <class T>
static void embed_grad_some(struct queue *q, float *dw, const T *dx, const int32_t *ids,
                            int64_t first, int64_t rows, int n, int64_t D, bool wide_w, bool wide_x)
{
    const int64_t packs = ceil_div(D, pack_size<T>);
    const int lanes = round_up_power(packs, WARP), passes = sort_passes(rows);
    const int warps = (int)min_i64(ceil_div(n, TOKENS_PER_WARP), SORT_WARPS);
    struct token *const tokens = values<struct token>({ q->partial });
    const dim3 block((unsigned)lanes, (unsigned)(FLAT_THREADS / lanes));
    const dim3 grid((unsigned)ceil_div(n, (int64_t)block.y), (unsigned)ceil_div(packs, lanes));
    LAUNCH(sort_kernel, dim3(1), dim3((unsigned)(warps * WARP)), 0, q->stream, tokens, ids, first,
           rows, n, passes);
    cuda_check(cudaGetLastError(), "embed_grad");
    LAUNCH(embed_grad_kernel<T>, grid, block, 0, q->stream, dw, dx,
           tokens + (int64_t)(passes % 2) * n, rows, n, D, wide_w, wide_x);
    cuda_check(cudaGetLastError(), "embed_grad");
}

extern "C" void cuda_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids,
                                int64_t first, int64_t rows, int64_t T, int64_t D)
{
    const int64_t most = (int64_t)(q->partial_bytes / (2 * sizeof(struct token)));
    BUG_IF(rows >= UINT32_MAX || most < 1 || most > INT32_MAX);
    with_element(dx.t, "embed_grad", [=](auto type) {
        typedef typename decltype(type)::type E;
        for (int64_t t = 0; t < T; t += most) {
            embed_grad_some(q, elements<float>(dw), elements<E>(dx) + t * D,
                            values<int32_t>(ids) + t, first, rows, (int)min_i64(most, T - t), D,
                            is_wide(dw, D), is_wide(dx, D));
        }
    });
}
