/* Vocabulary-parallel cross-entropy. A NaN among the logits shows in the sum: fmaxf passes it over,
 * exp does not. */
#include "cuda/launch.h"
#include "cuda/pack.h"
#include "cuda/reduce.h"
#include "cuda/slots.h"

enum { STATS_THREADS = 512, STATS_PACKS = 4 };

/* ---- statistics: a block per row, which is read once ---- */
/* A running maximum and the sum of exp(x - base), base = the maximum, or 0 while that is -inf. */
struct running {
    float top, sum;
};
static __device__ __forceinline__ float running_base(float top)
{
    return top == -INFINITY ? 0 : top;
}

/* The next packs, `step` apart; FULL: all their elements count, else those before `left`. */
template <bool FULL, int N>
static __device__ __forceinline__ void running_add(struct running *r,
                                                   const pack<float, N> (&in)[STATS_PACKS],
                                                   int64_t left, int64_t step)
{
    float top = r->top, sum = 0;
#pragma unroll
    for (int u = 0; u < STATS_PACKS; u++) {
        const floats<N> x = pack_widen(in[u]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            top = FULL || u * step + i < left ? fmaxf(top, x.x[i]) : top;
        }
    }
    const float base = running_base(top);
#pragma unroll
    for (int u = 0; u < STATS_PACKS; u++) {
        const floats<N> x = pack_widen(in[u]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum += FULL || u * step + i < left ? expf(x.x[i] - base) : 0;
        }
    }
    r->sum = r->sum * expf(running_base(r->top) - base) + sum;
    r->top = top;
}

static __global__ void __launch_bounds__(STATS_THREADS)
    softmax_stats_kernel(float *__restrict__ stats, const float *__restrict__ logits,
                         const int32_t *__restrict__ labels, int64_t rows, int64_t first,
                         int64_t real, bool wide)
{
    enum { N = pack_size<float> };
    SHARED_ARRAY(float, shared, MAX_WARPS);
    const int64_t t = blockIdx.x, step = (int64_t)blockDim.x * N;
    const float *const x = logits + t * rows;
    struct running r = { -INFINITY, 0 };
    for (int64_t at = (int64_t)threadIdx.x * N; at < real; at += STATS_PACKS * step) {
        pack<float, N> in[STATS_PACKS];
#pragma unroll
        for (int u = 0; u < STATS_PACKS; u++) {
            in[u] = pack_load<N>(x + at + u * step, real - at - u * step, wide);
        }
        if (real - at >= (STATS_PACKS - 1) * step + N) {
            running_add<true>(&r, in, real - at, step);
        } else {
            running_add<false>(&r, in, real - at, step);
        }
    }
    const float top = block_max(r.top, shared);
    /* a row of nothing but -inf has no softmax: NaN, as -inf - -inf is */
    const float mine = real > 0 && r.top == -INFINITY && top == -INFINITY
                           ? NAN
                           : r.sum * expf(running_base(r.top) - running_base(top));
    const float sum = block_sum(mine, shared);
    if (threadIdx.x == 0) {
        const int64_t label = labels[t] - first;
        stats[t * 3] = top;
        stats[t * 3 + 1] = sum;
        stats[t * 3 + 2] = label >= 0 && label < real ? x[label] : 0;
    }
}

extern "C" void cuda_softmax_stats(struct queue *q, struct operand stats, struct operand logits,
                                   dptr labels, int64_t T, int64_t rows, int64_t first,
                                   int64_t real)
{
    if (T == 0) {
        return;
    }
    const int64_t packs = ceil_div(real, STATS_PACKS * pack_size<float>);
    const int64_t threads = max_i64(1, min_i64(ceil_div(packs, WARP), STATS_THREADS / WARP)) * WARP;
    LAUNCH(softmax_stats_kernel, dim3((unsigned)T), dim3((unsigned)threads), 0, q->stream,
           elements<float>(stats), elements<float>(logits), values<int32_t>(labels), rows, first,
           real, is_wide(logits, rows));
    cuda_check(cudaGetLastError(), "softmax_stats");
}

/* ---- the loss, in double: sums of LOSS_ROWS tokens, then these ---- */
enum { LOSS_ROWS = 256 };

static __global__ void __launch_bounds__(LOSS_ROWS)
    softmax_loss_kernel(double *__restrict__ partial, float *__restrict__ lse,
                        float *__restrict__ token_loss, const float *__restrict__ all, int parts,
                        const int32_t *__restrict__ labels, int64_t rows)
{
    SHARED_ARRAY(double, shared, MAX_WARPS);
    const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double lost = 0;
    if (t < rows) {
        float top = -INFINITY;
        double sum = 0, logit = 0;
        for (int64_t p = 0; p < parts; p++) {
            top = fmaxf(top, all[(p * rows + t) * 3]);
        }
        for (int64_t p = 0; p < parts; p++) {
            const float *const stats = all + (p * rows + t) * 3;
            sum += (double)stats[1] * expf(stats[0] - top);
            logit += stats[2];
        }
        const double l = top + log(sum);
        lost = labels[t] >= 0 ? l - logit : 0;
        lse[t] = (float)l;
        if (token_loss) {
            token_loss[t] = (float)lost;
        }
    }
    const double total = block_sum(lost, shared);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = total;
    }
}

static __global__ void __launch_bounds__(LOSS_ROWS)
    loss_sum_kernel(double *loss, const double *__restrict__ partial, int64_t n)
{
    SHARED_ARRAY(double, shared, MAX_WARPS);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        sum += partial[i];
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) {
        *loss += sum;
    }
}

extern "C" void cuda_softmax_loss(struct queue *q, dptr loss, struct operand lse,
                                  struct operand token_loss, struct operand all, int parts,
                                  dptr labels, int64_t T)
{
    const int64_t blocks = ceil_div(T, LOSS_ROWS);
    if (T == 0) {
        return;
    }
    BUG_IF((size_t)blocks * sizeof(double) > q->partial_bytes);
    LAUNCH(softmax_loss_kernel, dim3((unsigned)blocks), dim3(LOSS_ROWS), 0, q->stream,
           values<double>({ q->partial }), elements<float>(lse), elements<float>(token_loss),
           elements<float>(all), parts, values<int32_t>(labels), T);
    cuda_check(cudaGetLastError(), "softmax_loss");
    LAUNCH(loss_sum_kernel, dim3(1), dim3(LOSS_ROWS), 0, q->stream, values<double>(loss),
           values<double>({ q->partial }), blocks);
    cuda_check(cudaGetLastError(), "softmax_loss");
}

/* ---- gradient of the logits; dlogits may be logits ---- */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    softmax_grad_kernel(T *dlogits, const float *logits, const float *__restrict__ lse,
                        const int32_t *__restrict__ labels, float scale, int64_t tokens,
                        int64_t rows, int64_t first, int64_t real, bool wide, bool wide_out)
{
    enum { N = pack_size<T, float> };
    const int64_t j = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < tokens;
         t += (int64_t)gridDim.y * blockDim.y) {
        const int64_t label = labels[t], used = label >= 0 ? real : 0;
        const float l = lse[t];
        floats<N> x = pack_widen(pack_load<N>(logits + t * rows + j, used - j, wide));
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float p = expf(x.x[i] - l) - (label == first + j + i ? 1.0f : 0.0f);
            x.x[i] = j + i < used ? p * scale : 0;
        }
        pack_store<N>(dlogits + t * rows + j, pack_narrow<T>(x), rows - j, wide_out);
    }
}

extern "C" void cuda_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                                  struct operand lse, dptr labels, double scale, int64_t T,
                                  int64_t rows, int64_t first, int64_t real)
{
    if (T == 0) {
        return;
    }
    with_element(dlogits.t, "softmax_grad", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, rows, pack_size<E, float>);
        LAUNCH(softmax_grad_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(dlogits),
               elements<float>(logits), elements<float>(lse), values<int32_t>(labels), (float)scale,
               T, rows, first, real, is_wide(logits, rows), is_wide(dlogits, rows));
    });
    cuda_check(cudaGetLastError(), "softmax_grad");
}
