/* SwiGLU. */
#include "cuda/launch.h"
#include "cuda/pack.h"
#include "cuda/slots.h"

/* s = 1/(1 + exp(-g)) and 1 - s without cancellation. Only float32 needs exp and the quotient to
 * the last place. */
struct sigmoid {
    float s, rest;
};
template <class T> static __device__ __forceinline__ struct sigmoid sigmoid_of(float g)
{
    const bool exact = sizeof(T) == sizeof(float);
    const float e = exact ? expf(-fabsf(g)) : __expf(-fabsf(g));
    const float large = exact ? 1 / (1 + e) : __fdividef(1, 1 + e), small = e * large;
    return { g < 0 ? small : large, g < 0 ? large : small };
}

template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    swiglu_kernel(T *__restrict__ h, const T *__restrict__ gu, int64_t rows, int64_t F, bool wide)
{
    enum { N = pack_size<T> };
    const int64_t f = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N, left = F - f;
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < rows;
         t += (int64_t)gridDim.y * blockDim.y) {
        const pack<T, N> a = pack_load<N>(gu + t * 2 * F + f, left, wide);
        const pack<T, N> b = pack_load<N>(gu + t * 2 * F + F + f, left, wide);
        const floats<N> gate = pack_widen(a), up = pack_widen(b);
        floats<N> out;
#pragma unroll
        for (int i = 0; i < N; i++) {
            out.x[i] = gate.x[i] * sigmoid_of<T>(gate.x[i]).s * up.x[i];
        }
        pack_store<N>(h + t * F + f, pack_narrow<T>(out), left, wide);
    }
}

extern "C" void cuda_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T,
                            int64_t F)
{
    if (T == 0) {
        return;
    }
    with_element(h.t, "swiglu", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, F, pack_size<E>);
        LAUNCH(swiglu_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(h),
               elements<E>(gu), T, F, is_wide(h, F) && is_wide(gu, F));
    });
    cuda_check(cudaGetLastError(), "swiglu");
}

/* silu'(g) = s (1 + g (1 - s)); dgu may be gu: a thread reads its packs before it writes them */
template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    swiglu_grad_kernel(T *dgu, const T *__restrict__ dh, const T *gu, int64_t rows, int64_t F,
                       bool wide)
{
    enum { N = pack_size<T> };
    const int64_t f = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N, left = F - f;
    for (int64_t t = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; t < rows;
         t += (int64_t)gridDim.y * blockDim.y) {
        const pack<T, N> a = pack_load<N>(gu + t * 2 * F + f, left, wide);
        const pack<T, N> b = pack_load<N>(gu + t * 2 * F + F + f, left, wide);
        const pack<T, N> c = pack_load<N>(dh + t * F + f, left, wide);
        floats<N> gate = pack_widen(a), up = pack_widen(b);
        const floats<N> d = pack_widen(c);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float g = gate.x[i];
            const struct sigmoid s = sigmoid_of<T>(g);
            gate.x[i] = d.x[i] * up.x[i] * s.s * (1 + g * s.rest);
            up.x[i] = d.x[i] * g * s.s;
        }
        pack_store<N>(dgu + t * 2 * F + f, pack_narrow<T>(gate), left, wide);
        pack_store<N>(dgu + t * 2 * F + F + f, pack_narrow<T>(up), left, wide);
    }
}

extern "C" void cuda_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh,
                                 struct operand gu, int64_t T, int64_t F)
{
    if (T == 0) {
        return;
    }
    with_element(gu.t, "swiglu_grad", [=](auto type) {
        typedef typename decltype(type)::type E;
        const struct tiling tile = tile_rows(q, T, F, pack_size<E>);
        LAUNCH(swiglu_grad_kernel<E>, tile.grid, tile.block, 0, q->stream, elements<E>(dgu),
               elements<E>(dh), elements<E>(gu), T, F,
               is_wide(dgu, F) && is_wide(dh, F) && is_wide(gu, F));
    });
    cuda_check(cudaGetLastError(), "swiglu_grad");
}
