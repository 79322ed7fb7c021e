/* RMSNorm. A run of K elements belongs to a group of threads: part of a warp for short runs, a
 * block for long ones. Each thread keeps its first packs in registers between the two passes over a
 * run and reads what is beyond them again. */
#include "cuda/columns.h"
#include "cuda/reduce.h"
#include "cuda/slots.h"

enum { LONGEST_GROUP = 512, SHORT_BLOCK = 128, KEPT = 4 };

/* run = row * heads + head */
struct norm_runs {
    int n, heads, lanes; /* lanes: threads of a run */
    int64_t K;
    dim3 grid, block;
    bool is_short; /* a pack a thread is enough */
};

static struct norm_runs norm_plan(int64_t T, int heads, int64_t K, int pack)
{
    struct norm_runs r;
    const int64_t packs = ceil_div(K, pack);
    int groups;
    BUG_IF(T * heads > INT32_MAX);
    r.n = (int)(T * heads);
    r.heads = heads;
    r.K = K;
    r.is_short = packs <= WARP;
    r.lanes = r.is_short ? round_up_power(packs, WARP)
                         : (int)min_i64(ceil_div(packs, WARP * KEPT) * WARP, LONGEST_GROUP);
    groups = r.is_short ? SHORT_BLOCK / r.lanes : 1;
    r.block = dim3((unsigned)(r.lanes * groups));
    r.grid = dim3((unsigned)ceil_div(r.n, groups));
    return r;
}

/* Where a thread stands: its run, if there is one, and its first element in it. */
struct norm_place {
    bool live;
    int run;
    int64_t row, head; /* head in elements */
    int64_t first, step;
};
static __device__ __forceinline__ struct norm_place norm_stand(const struct norm_runs &r, int pack)
{
    struct norm_place p;
    p.run = (int)(blockIdx.x * (blockDim.x / r.lanes) + threadIdx.x / r.lanes);
    p.live = p.run < r.n;
    p.row = p.live ? p.run / r.heads : 0;
    p.head = p.live ? p.run % r.heads * r.K : 0;
    p.first = (int)threadIdx.x % r.lanes * pack;
    p.step = (int64_t)r.lanes * pack;
    return p;
}

static __device__ __forceinline__ float norm_sum(float v, const struct norm_runs &r, float *shared)
{
    return r.lanes <= WARP ? warp_sum(v, r.lanes) : block_sum(v, shared);
}

/* ---- forward ---- */
template <class T> struct norm_call {
    T *y, *x_out;
    const T *x, *r, *w;
    float *rstd, eps;
    int64_t ldy, ldx;
    bool wide, wide_y, wide_w;
};

template <int N> static __device__ __forceinline__ float norm_squares(const floats<N> &x)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        sum += x.x[i] * x.x[i];
    }
    return sum;
}

/* x + r, rounded to T, into x_out */
template <int N, class T>
static __device__ __forceinline__ void norm_add(const struct norm_call<T> &c, int64_t at,
                                                pack<T, N> *a, const pack<T, N> &more, int64_t left)
{
    floats<N> x = pack_widen(*a);
    const floats<N> r = pack_widen(more);
#pragma unroll
    for (int i = 0; i < N; i++) {
        x.x[i] += r.x[i];
    }
    *a = pack_narrow<T>(x);
    pack_store<N>(c.x_out + at, *a, left, c.wide);
}

template <int N, class T>
static __device__ __forceinline__ void norm_write(const struct norm_call<T> &c, int64_t at,
                                                  const pack<T, N> &a, const pack<T, N> &weight,
                                                  float rstd, int64_t left)
{
    floats<N> x = pack_widen(a);
    const floats<N> w = pack_widen(weight);
#pragma unroll
    for (int i = 0; i < N; i++) {
        x.x[i] = x.x[i] * rstd * w.x[i];
    }
    pack_store<N>(c.y + at, pack_narrow<T>(x), left, c.wide_y);
}

template <class T, int C>
static __global__ void __launch_bounds__(LONGEST_GROUP)
    norm_kernel(struct norm_call<T> c, struct norm_runs runs)
{
    enum { N = pack_size<T> };
    SHARED_ARRAY(float, shared, MAX_WARPS);
    const struct norm_place p = norm_stand(runs, N);
    const int64_t x_at = p.row * c.ldx + p.head, y_at = p.row * c.ldy + p.head;
    const int64_t K = p.live ? runs.K : 0;
    const T *const in = c.r ? c.x_out : c.x;
    pack<T, N> kept[C], more[C];
    float sum = 0;
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int64_t i = p.first + j * p.step;
        kept[j] = pack_load<N>(c.x + x_at + i, K - i, c.wide);
        if (c.r) {
            more[j] = pack_load<N>(c.r + x_at + i, K - i, c.wide);
        }
    }
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int64_t i = p.first + j * p.step;
        if (c.r) {
            norm_add<N>(c, x_at + i, &kept[j], more[j], K - i);
        }
        sum += norm_squares(pack_widen(kept[j]));
    }
    for (int64_t i = p.first + C * p.step; i < K; i += p.step) {
        pack<T, N> a = pack_load<N>(c.x + x_at + i, K - i, c.wide);
        if (c.r) {
            norm_add<N>(c, x_at + i, &a, pack_load<N>(c.r + x_at + i, K - i, c.wide), K - i);
        }
        sum += norm_squares(pack_widen(a));
    }
    const float rstd = 1 / sqrtf(norm_sum(sum, runs, shared) / (float)runs.K + c.eps);
    if (p.live && p.first == 0) {
        c.rstd[p.run] = rstd;
    }
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int64_t i = p.first + j * p.step;
        norm_write<N>(c, y_at + i, kept[j], pack_load<N>(c.w + i, K - i, c.wide_w), rstd, K - i);
    }
    for (int64_t i = p.first + C * p.step; i < K; i += p.step) {
        norm_write<N>(c, y_at + i, pack_load<N>(in + x_at + i, K - i, c.wide),
                      pack_load<N>(c.w + i, K - i, c.wide_w), rstd, K - i);
    }
}

/* Whether the packs of every head begin at a multiple of 16 bytes. */
static bool norm_is_wide(struct operand o, int64_t ld, int heads, int64_t K)
{
    return is_wide(o, ld) && (heads == 1 || is_wide(o, K));
}

extern "C" void cuda_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                             struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                             struct operand w, int64_t T, int heads, int64_t K, double eps)
{
    if (T == 0) {
        return;
    }
    with_element(x.t, "rmsnorm", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct norm_runs runs = norm_plan(T, heads, K, pack_size<E>);
        struct norm_call<E> c;
        c.y = elements<E>(y);
        c.x = elements<E>(x);
        c.r = elements<E>(r);
        c.x_out = r.p.p ? elements<E>(x_out) : NULL;
        c.w = elements<E>(w);
        c.rstd = elements<float>(rstd);
        c.eps = (float)eps;
        c.ldy = ldy;
        c.ldx = ldx;
        c.wide =
            norm_is_wide(x, ldx, heads, K) && (!r.p.p || (is_wide(r, ldx) && is_wide(x_out, ldx)));
        c.wide_y = norm_is_wide(y, ldy, heads, K);
        c.wide_w = is_wide(w, 0);
        if (runs.is_short) {
            LAUNCH((norm_kernel<E, 1>), runs.grid, runs.block, 0, q->stream, c, runs);
        } else {
            LAUNCH((norm_kernel<E, KEPT>), runs.grid, runs.block, 0, q->stream, c, runs);
        }
    });
    cuda_check(cudaGetLastError(), "rmsnorm");
}

/* ---- gradient of the input ---- */
template <class T> struct norm_grad_call {
    T *dx;
    const T *res, *dy, *x, *w;
    const float *rstd;
    int64_t lddx, lddy, ldx;
    bool wide_dx, wide_dy, wide_x, wide_w;
};

template <class T, int N> struct norm_grad_packs {
    pack<T, N> dy, x, w;
};
template <int N, class T>
static __device__ __forceinline__ void norm_grad_load(norm_grad_packs<T, N> *a,
                                                      const struct norm_grad_call<T> &c,
                                                      const struct norm_place &p, int64_t i,
                                                      int64_t left)
{
    a->dy = pack_load<N>(c.dy + p.row * c.lddy + p.head + i, left, c.wide_dy);
    a->x = pack_load<N>(c.x + p.row * c.ldx + p.head + i, left, c.wide_x);
    a->w = pack_load<N>(c.w + i, left, c.wide_w);
}

/* sum of w dy xhat */
template <int N, class T>
static __device__ __forceinline__ float norm_grad_dot(const norm_grad_packs<T, N> &a, float rstd)
{
    const floats<N> dy = pack_widen(a.dy), x = pack_widen(a.x), w = pack_widen(a.w);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        sum += w.x[i] * dy.x[i] * (x.x[i] * rstd);
    }
    return sum;
}

template <int N, class T>
static __device__ __forceinline__ void norm_grad_write(const norm_grad_packs<T, N> &a,
                                                       const struct norm_grad_call<T> &c,
                                                       int64_t at, float rstd, float mean,
                                                       int64_t left)
{
    const floats<N> dy = pack_widen(a.dy), x = pack_widen(a.x), w = pack_widen(a.w);
    floats<N> d = {};
    if (c.res) {
        d = pack_widen(pack_load<N>(c.res + at, left, c.wide_dx));
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        d.x[i] += rstd * (w.x[i] * dy.x[i] - x.x[i] * rstd * mean);
    }
    pack_store<N>(c.dx + at, pack_narrow<T>(d), left, c.wide_dx);
}

/* dx may be dy or res: every element is read and written by one thread, in this order. */
template <class T, int C>
static __global__ void __launch_bounds__(LONGEST_GROUP)
    norm_grad_kernel(struct norm_grad_call<T> c, struct norm_runs runs)
{
    enum { N = pack_size<T> };
    SHARED_ARRAY(float, shared, MAX_WARPS);
    const struct norm_place p = norm_stand(runs, N);
    const int64_t dx_at = p.row * c.lddx + p.head, K = p.live ? runs.K : 0;
    const float rstd = p.live ? c.rstd[p.run] : 0;
    norm_grad_packs<T, N> kept[C], a;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int64_t i = p.first + j * p.step;
        norm_grad_load<N>(&kept[j], c, p, i, K - i);
    }
#pragma unroll
    for (int j = 0; j < C; j++) {
        sum += norm_grad_dot<N>(kept[j], rstd);
    }
    for (int64_t i = p.first + C * p.step; i < K; i += p.step) {
        norm_grad_load<N>(&a, c, p, i, K - i);
        sum += norm_grad_dot<N>(a, rstd);
    }
    const float mean = norm_sum(sum, runs, shared) / (float)runs.K;
#pragma unroll
    for (int j = 0; j < C; j++) {
        const int64_t i = p.first + j * p.step;
        norm_grad_write<N>(kept[j], c, dx_at + i, rstd, mean, K - i);
    }
    for (int64_t i = p.first + C * p.step; i < K; i += p.step) {
        norm_grad_load<N>(&a, c, p, i, K - i);
        norm_grad_write<N>(a, c, dx_at + i, rstd, mean, K - i);
    }
}

extern "C" void cuda_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx,
                                        struct operand res, struct operand dy, int64_t lddy,
                                        struct operand x, int64_t ldx, struct operand rstd,
                                        struct operand w, int64_t T, int heads, int64_t K)
{
    if (T == 0) {
        return;
    }
    with_element(x.t, "rmsnorm_grad_input", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct norm_runs runs = norm_plan(T, heads, K, pack_size<E>);
        struct norm_grad_call<E> c;
        c.dx = elements<E>(dx);
        c.res = elements<E>(res);
        c.dy = elements<E>(dy);
        c.x = elements<E>(x);
        c.w = elements<E>(w);
        c.rstd = elements<float>(rstd);
        c.lddx = lddx;
        c.lddy = lddy;
        c.ldx = ldx;
        c.wide_dx = norm_is_wide(dx, lddx, heads, K) && is_wide(res, 0);
        c.wide_dy = norm_is_wide(dy, lddy, heads, K);
        c.wide_x = norm_is_wide(x, ldx, heads, K);
        c.wide_w = is_wide(w, 0);
        if (runs.is_short) {
            LAUNCH((norm_grad_kernel<E, 1>), runs.grid, runs.block, 0, q->stream, c, runs);
        } else {
            LAUNCH((norm_grad_kernel<E, KEPT>), runs.grid, runs.block, 0, q->stream, c, runs);
        }
    });
    cuda_check(cudaGetLastError(), "rmsnorm_grad_input");
}

/* ---- gradient of the weight: sums over the columns of a head ---- */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    norm_weight_kernel(float *__restrict__ partial, const T *__restrict__ dy, int64_t lddy,
                       const T *__restrict__ x, int64_t ldx, const float *__restrict__ rstd,
                       int64_t rows, int heads, int64_t K, bool wide_dy, bool wide_x)
{
    enum { N = pack_size<T> };
    SHARED_ARRAY(float, shared, FLAT_THREADS *N);
    const int64_t k = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    const struct slab slab = columns_slab(rows);
    /* steps are rows, or heads of rows: a thread takes one of blockDim.y */
    const int64_t first = slab.first * heads, end = slab.end * heads;
    floats<N> sum = {};
#pragma unroll 4
    for (int64_t s = first + threadIdx.y; s < end; s += blockDim.y) {
        const int64_t t = heads == 1 ? s : (int64_t)((unsigned)s / (unsigned)heads);
        const int64_t head = (s - t * heads) * K;
        const pack<T, N> a = pack_load<N>(dy + t * lddy + head + k, K - k, wide_dy);
        const pack<T, N> b = pack_load<N>(x + t * ldx + head + k, K - k, wide_x);
        const float scale = rstd[s];
        const floats<N> d = pack_widen(a), in = pack_widen(b);
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum.x[i] += d.x[i] * in.x[i] * scale;
        }
    }
    columns_store(partial, sum, K, shared);
}

extern "C" void cuda_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy,
                                         int64_t lddy, struct operand x, int64_t ldx,
                                         struct operand rstd, int64_t T, int heads, int64_t K)
{
    if (T == 0) {
        return;
    }
    BUG_IF(T * heads > INT32_MAX);
    with_element(x.t, "rmsnorm_grad_weight", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct columns c = columns_plan(q, T, heads, K, pack_size<E>);
        LAUNCH(norm_weight_kernel<E>, c.grid, c.block, 0, q->stream, values<float>({ q->partial }),
               elements<E>(dy), lddy, elements<E>(x), ldx, elements<float>(rstd), T, heads, K,
               norm_is_wide(dy, lddy, heads, K), norm_is_wide(x, ldx, heads, K));
        cuda_check(cudaGetLastError(), "rmsnorm_grad_weight");
        columns_finish(q, elements<float>(dw), &c, K);
    });
}
