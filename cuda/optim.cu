/* The optimiser's slots: norms of gradients, AdamW. */
#include "cuda/launch.h"
#include "cuda/pack.h"
#include "cuda/reduce.h"
#include "cuda/slots.h"

enum { SUM_PACKS = 4 };

/* A warp per run; which lane adds an element does not depend on where the run lies. */
static __global__ void __launch_bounds__(FLAT_THREADS)
    square_sums_kernel(double *__restrict__ sums, const float *__restrict__ g,
                       const int64_t *__restrict__ at, const int64_t *__restrict__ n, int64_t runs)
{
    enum { N = pack_size<float>, STEP = WARP * N };
    const int lane = (int)threadIdx.x % WARP;
    const int64_t warps = (int64_t)gridDim.x * (FLAT_THREADS / WARP);
    for (int64_t run = ((int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x) / WARP; run < runs;
         run += warps) {
        const float *const x = g + at[run];
        const int64_t count = n[run];
        const bool wide = reinterpret_cast<uintptr_t>(x) % 16 == 0;
        double sum = 0;
        for (int64_t i = lane * N; i < count; i += SUM_PACKS * STEP) {
            pack<float, N> in[SUM_PACKS];
#pragma unroll
            for (int u = 0; u < SUM_PACKS; u++) {
                in[u] = pack_load<N>(x + i + u * STEP, count - i - u * STEP, wide);
            }
#pragma unroll
            for (int u = 0; u < SUM_PACKS; u++) {
                const floats<N> v = pack_widen(in[u]);
#pragma unroll
                for (int k = 0; k < N; k++) {
                    sum += (double)v.x[k] * v.x[k];
                }
            }
        }
        sum = warp_sum(sum, WARP);
        if (lane == 0) {
            sums[run] = sum;
        }
    }
}

extern "C" void cuda_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n,
                                 int64_t runs)
{
    if (runs == 0) {
        return;
    }
    LAUNCH(square_sums_kernel, flat_grid(q, runs * WARP), dim3(FLAT_THREADS), 0, q->stream,
           values<double>(sums), elements<float>(g), values<int64_t>(at), values<int64_t>(n), runs);
    cuda_check(cudaGetLastError(), "square_sums");
}

/* ---- AdamW ---- */
struct adamw_call {
    float *w, *m, *v;
    const float *g;
    const double *clip;
    int64_t n;
    float beta1, rest1, beta2, rest2, decay, rate, inverse2, eps;
    bool wide, wide_copy;
};

/* w, m, v, g of one element; w loses decay w + rate m / (sqrt(v / c2) + eps), rounded once */
static __device__ __forceinline__ void adamw_element(float *w, float *m, float *v, float g,
                                                     float clip, const struct adamw_call &c)
{
    const float grad = g * clip;
    *m = fmaf(c.beta1, *m, c.rest1 * grad);
    *v = fmaf(c.beta2, *v, c.rest2 * grad * grad);
    *w -= fmaf(c.decay, *w, c.rate * *m / (sqrtf(*v * c.inverse2) + c.eps));
}

template <class C>
static __global__ void __launch_bounds__(FLAT_THREADS) adamw_kernel(struct adamw_call c, C *copy)
{
    enum { N = pack_size<float> };
    const float clip = (float)*c.clip;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < c.n;
         i += (int64_t)gridDim.x * blockDim.x * N) {
        const int64_t left = c.n - i;
        const pack<float, N> w_in = pack_load<N>(c.w + i, left, c.wide);
        const pack<float, N> m_in = pack_load<N>(c.m + i, left, c.wide);
        const pack<float, N> v_in = pack_load<N>(c.v + i, left, c.wide);
        const pack<float, N> g_in = pack_load<N>(c.g + i, left, c.wide);
        floats<N> w = pack_widen(w_in), m = pack_widen(m_in), v = pack_widen(v_in);
        const floats<N> g = pack_widen(g_in);
#pragma unroll
        for (int k = 0; k < N; k++) {
            adamw_element(&w.x[k], &m.x[k], &v.x[k], g.x[k], clip, c);
        }
        pack_store<N>(c.w + i, pack_narrow<float>(w), left, c.wide);
        pack_store<N>(c.m + i, pack_narrow<float>(m), left, c.wide);
        pack_store<N>(c.v + i, pack_narrow<float>(v), left, c.wide);
        if (copy) {
            pack_store<N>(copy + i, pack_narrow<C>(w), left, c.wide_copy);
        }
    }
}

extern "C" void cuda_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
                           struct operand g, struct operand copy, dptr clip,
                           const struct adamw_step *s, int64_t n)
{
    struct adamw_call c;
    if (n == 0) {
        return;
    }
    c.w = elements<float>(w);
    c.m = elements<float>(m);
    c.v = elements<float>(v);
    c.g = elements<float>(g);
    c.clip = values<double>(clip);
    c.n = n;
    c.beta1 = (float)s->beta1;
    c.rest1 = (float)(1 - s->beta1);
    c.beta2 = (float)s->beta2;
    c.rest2 = (float)(1 - s->beta2);
    c.decay = (float)(s->lr * s->decay);
    c.rate = (float)(s->lr / s->correction1);
    c.inverse2 = (float)(1 / s->correction2);
    c.eps = (float)s->eps;
    c.wide = is_wide(w, 0) && is_wide(m, 0) && is_wide(v, 0) && is_wide(g, 0);
    c.wide_copy = is_wide(copy, 0);
    with_element(copy.t, "adamw", [=](auto type) {
        typedef typename decltype(type)::type C;
        LAUNCH(adamw_kernel<C>, flat_grid(q, ceil_div(n, pack_size<float>)), dim3(FLAT_THREADS), 0,
               q->stream, c, elements<C>(copy));
    });
    cuda_check(cudaGetLastError(), "adamw");
}

/* A norm that is not a number stays one. */
static __global__ void clip_kernel(double *clip, const double *norm, double max_norm,
                                   double unscale)
{
    const double factor = max_norm / (*norm + 1e-6);
    *clip = (max_norm > 0 && !(factor > 1) ? factor : 1) * unscale;
}

extern "C" void cuda_clip_factor(struct queue *q, dptr clip, dptr norm, double max_norm,
                                 double unscale)
{
    LAUNCH(clip_kernel, dim3(1), dim3(1), 0, q->stream, values<double>(clip), values<double>(norm),
           max_norm, unscale);
    cuda_check(cudaGetLastError(), "clip_factor");
}
