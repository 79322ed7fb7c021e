/* Conversions, sums and biases. */
#include "cuda/columns.h"
#include "cuda/slots.h"

enum { FLAT_PACKS = 2 }; /* in flight in each thread */

/* ---- flat runs ---- */
template <class A, class B>
static __global__ void __launch_bounds__(FLAT_THREADS)
    convert_kernel(A *__restrict__ y, const B *__restrict__ x, int64_t n, bool wide)
{
    enum { N = pack_size<A, B> };
    const int64_t step = (int64_t)blockDim.x * N;
    int64_t at = (int64_t)blockIdx.x * step * FLAT_PACKS + threadIdx.x * N;
    for (; at < n; at += (int64_t)gridDim.x * step * FLAT_PACKS) {
        pack<B, N> in[FLAT_PACKS];
#pragma unroll
        for (int u = 0; u < FLAT_PACKS; u++) {
            in[u] = pack_load<N>(x + at + u * step, n - at - u * step, wide);
        }
#pragma unroll
        for (int u = 0; u < FLAT_PACKS; u++) {
            pack_store<N>(y + at + u * step, pack_narrow<A>(pack_widen(in[u])), n - at - u * step,
                          wide);
        }
    }
}

extern "C" void cuda_convert(struct queue *q, struct operand dst, struct operand src, int64_t n)
{
    if (n == 0) {
        return;
    }
    if (dst.t == src.t) {
        cuda_check(cudaMemcpyAsync(dst.p.p, src.p.p, (size_t)n * dtype_size(src.t),
                                   cudaMemcpyDeviceToDevice, q->stream),
                   "convert");
        return;
    }
    const bool wide = is_wide(dst, 0) && is_wide(src, 0);
    with_element(dst.t, "convert", [=](auto to) {
        with_element(src.t, "convert", [=](auto from) {
            typedef typename decltype(to)::type A;
            typedef typename decltype(from)::type B;
            if constexpr (element<A>::DTYPE != (int)element<B>::DTYPE) {
                LAUNCH((convert_kernel<A, B>),
                       flat_grid(q, ceil_div(n, FLAT_PACKS * pack_size<A, B>)), dim3(FLAT_THREADS),
                       0, q->stream, elements<A>(dst), elements<B>(src), n, wide);
            }
        });
    });
    cuda_check(cudaGetLastError(), "convert");
}

/* y may be a or b: a thread reads its packs before it writes them. */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    add_kernel(T *y, const T *a, const T *b, int64_t n, bool wide)
{
    enum { N = pack_size<T> };
    const int64_t step = (int64_t)blockDim.x * N;
    int64_t at = (int64_t)blockIdx.x * step * FLAT_PACKS + threadIdx.x * N;
    for (; at < n; at += (int64_t)gridDim.x * step * FLAT_PACKS) {
        pack<T, N> left[FLAT_PACKS], right[FLAT_PACKS];
#pragma unroll
        for (int u = 0; u < FLAT_PACKS; u++) {
            left[u] = pack_load<N>(a + at + u * step, n - at - u * step, wide);
            right[u] = pack_load<N>(b + at + u * step, n - at - u * step, wide);
        }
#pragma unroll
        for (int u = 0; u < FLAT_PACKS; u++) {
            floats<N> sum = pack_widen(left[u]);
            const floats<N> more = pack_widen(right[u]);
#pragma unroll
            for (int i = 0; i < N; i++) {
                sum.x[i] += more.x[i];
            }
            pack_store<N>(y + at + u * step, pack_narrow<T>(sum), n - at - u * step, wide);
        }
    }
}

extern "C" void cuda_add(struct queue *q, struct operand y, struct operand a, struct operand b,
                         int64_t n)
{
    if (n == 0) {
        return;
    }
    const bool wide = is_wide(y, 0) && is_wide(a, 0) && is_wide(b, 0);
    with_element(y.t, "add", [=](auto type) {
        typedef typename decltype(type)::type T;
        LAUNCH(add_kernel<T>, flat_grid(q, ceil_div(n, FLAT_PACKS * pack_size<T>)),
               dim3(FLAT_THREADS), 0, q->stream, elements<T>(y), elements<T>(a), elements<T>(b), n,
               wide);
    });
    cuda_check(cudaGetLastError(), "add");
}

/* ---- biases ---- */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    bias_kernel(T *__restrict__ y, int64_t ldy, const T *__restrict__ b, int64_t rows, int64_t N,
                bool wide, bool wide_b)
{
    enum { P = pack_size<T> };
    const int64_t n = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * P;
    const floats<P> add = pack_widen(pack_load<P>(b + n, N - n, wide_b));
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < rows;
         t += (int64_t)gridDim.y * blockDim.y) {
        floats<P> sum = pack_widen(pack_load<P>(y + t * ldy + n, N - n, wide));
#pragma unroll
        for (int i = 0; i < P; i++) {
            sum.x[i] += add.x[i];
        }
        pack_store<P>(y + t * ldy + n, pack_narrow<T>(sum), N - n, wide);
    }
}

extern "C" void cuda_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b,
                          int64_t T, int64_t N)
{
    if (T == 0) {
        return;
    }
    with_element(y.t, "bias", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, N, pack_size<E>);
        LAUNCH(bias_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(y), ldy,
               elements<E>(b), T, N, is_wide(y, ldy), is_wide(b, 0));
    });
    cuda_check(cudaGetLastError(), "bias");
}

template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    bias_grad_kernel(float *__restrict__ partial, const T *__restrict__ dy, int64_t ldy,
                     int64_t rows, int64_t N, bool wide)
{
    enum { P = pack_size<T> };
    SHARED_ARRAY(float, shared, FLAT_THREADS *P);
    const int64_t n = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * P;
    const struct slab slab = columns_slab(rows);
    floats<P> sum = {};
#pragma unroll 4
    for (int64_t t = slab.first + threadIdx.y; t < slab.end; t += blockDim.y) {
        const floats<P> in = pack_widen(pack_load<P>(dy + t * ldy + n, N - n, wide));
#pragma unroll
        for (int i = 0; i < P; i++) {
            sum.x[i] += in.x[i];
        }
    }
    columns_store(partial, sum, N, shared);
}

extern "C" void cuda_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy,
                               int64_t T, int64_t N)
{
    if (T == 0) {
        return;
    }
    with_element(dy.t, "bias_grad", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct columns c = columns_plan(q, T, 1, N, pack_size<E>);
        LAUNCH(bias_grad_kernel<E>, c.grid, c.block, 0, q->stream, values<float>({ q->partial }),
               elements<E>(dy), ldy, T, N, is_wide(dy, ldy));
        cuda_check(cudaGetLastError(), "bias_grad");
        columns_finish(q, elements<float>(db), &c, N);
    });
}

/* ---- the second half of column sums ---- */
static __global__ void __launch_bounds__(FLAT_THREADS)
    columns_kernel(float *__restrict__ to, const float *__restrict__ partial, int slabs,
                   int64_t columns)
{
    SHARED_ARRAY(float, sums, FLAT_THREADS);
    const int self = (int)(threadIdx.y * WARP + threadIdx.x);
    const int64_t column = (int64_t)blockIdx.x * WARP + threadIdx.x;
    float sum = 0;
#pragma unroll 4
    for (int s = (int)threadIdx.y; s < slabs && column < columns; s += (int)blockDim.y) {
        sum += partial[s * columns + column];
    }
    sums[self] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        float total = 0;
        for (int y = 0; y < (int)blockDim.y; y++) {
            total += sums[y * WARP + self];
        }
        to[column] += total;
    }
}

void columns_finish(struct queue *q, float *to, const struct columns *c, int64_t columns)
{
    LAUNCH(columns_kernel, dim3((unsigned)ceil_div(columns, WARP)), dim3(WARP, FLAT_THREADS / WARP),
           0, q->stream, to, values<float>({ q->partial }), c->slabs, columns);
    cuda_check(cudaGetLastError(), "a column sum");
}
