/* Reductions over the threads of a block, always in the same order. */
#ifndef CUDA_REDUCE_H
#define CUDA_REDUCE_H
#include "cuda/dialect.h"
#include "cuda/launch.h"

enum { MAX_WARPS = 32 };

/* The sum over groups of `lanes` neighbours, a power of two up to a warp. */
template <class S> static __device__ __forceinline__ S warp_sum(S v, int lanes)
{
    for (int apart = lanes / 2; apart > 0; apart /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, apart);
    }
    return v;
}

/* The sum over the block, whole warps, in every thread; each: MAX_WARPS in shared memory, free
 * again on return. */
template <class S> static __device__ __forceinline__ S block_sum(S v, S *each)
{
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    v = warp_sum(v, WARP);
    if (lane == 0) {
        each[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    v = warp_sum(lane < warps ? each[lane] : S(0), WARP);
    __syncthreads();
    return v;
}

/* The largest of the block; a NaN loses. */
static __device__ __forceinline__ float block_max(float v, float *each)
{
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, apart));
    }
    if (lane == 0) {
        each[threadIdx.x / WARP] = v;
    }
    __syncthreads();
    v = each[lane < warps ? lane : 0];
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, apart));
    }
    __syncthreads();
    return v;
}
#endif
