/* barriers.cu - missing barriers of blocks and warps. */
#include "planted.h"

namespace
{

constexpr unsigned ALL = 0xffffffffu;

__device__ float warp_sum(float v)
{
    for (int offset = 16; offset; offset /= 2)
        v += __shfl_xor_sync(ALL, v, offset);
    return v;
}

/* Two rounds of a block's sum, so that the second may disturb the first. */
__global__ void sums(float *out, const float *x, bool first, bool second)
{
    SHARED_ARRAY(float, part, 32);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;

    for (int round = 0; round < 2; round++) {
        float v = warp_sum(x[threadIdx.x] * (float)(round + 1));
        if (lane == 0)
            part[warp] = v;
        if (first)
            __syncthreads();
        v = warp_sum(lane < warps ? part[lane] : 0);
        if (second)
            __syncthreads();
        if (threadIdx.x == 0 || threadIdx.x + 1 == blockDim.x)
            out[round * 2 + (threadIdx.x != 0)] = v;
    }
}

bool sums_right(bool first, bool second)
{
    buffer<float> x(64), out(4);
    stream q;

    for (size_t i = 0; i < 64; i++)
        x.host[i] = (float)i;
    x.put();
    LAUNCH(sums, dim3(1), dim3(64), 0, q.s, out.device, x.device, first, second);
    const std::vector<float> &r = out.get();
    return r[0] == 2016 && r[1] == 2016 && r[2] == 4032 && r[3] == 4032;
}

bool first_barrier(bool bug)
{
    return sums_right(!bug, true);
}

bool second_barrier(bool bug)
{
    return sums_right(true, !bug);
}

/* out[i] = sum over tiles of the tile's elements, read by every thread in its own order. */
__global__ void tiles(float *out, const float *x, int n, bool after, bool before)
{
    SHARED_ARRAY(float, tile, 64);
    float sum = 0;

    for (int t = 0; t < n; t++) {
        if (before)
            __syncthreads();
        tile[threadIdx.x] = x[t * 64 + (int)threadIdx.x];
        if (after)
            __syncthreads();
        for (int i = 0; i < 64; i++)
            sum += tile[(i + (int)threadIdx.x) % 64];
    }
    out[threadIdx.x] = sum;
}

bool tiles_right(bool after, bool before)
{
    buffer<float> x(192), out(64);
    stream q;

    for (size_t i = 0; i < 192; i++)
        x.host[i] = (float)i;
    x.put();
    LAUNCH(tiles, dim3(1), dim3(64), 0, q.s, out.device, x.device, 3, after, before);
    for (float v : out.get())
        if (v != 18336)
            return false;
    return true;
}

bool barrier_after_load(bool bug)
{
    return tiles_right(!bug, true);
}

bool barrier_before_load(bool bug)
{
    return tiles_right(true, !bug);
}

/* A row of shared memory of four lanes; the shuffle makes lanes meet, but orders no memory. */
__global__ void rows(float *out, const float *x, bool barrier)
{
    SHARED_ARRAY(float, row, 32);
    int lane = (int)threadIdx.x;

    row[lane] = x[lane];
    float largest = fmaxf(x[lane], __shfl_xor_sync(ALL, x[lane], 1));
    largest = fmaxf(largest, __shfl_xor_sync(ALL, largest, 2));
    if (barrier)
        __syncwarp();
    float sum = 0;
    for (int i = 0; i < 4; i++)
        sum += row[lane / 4 * 4 + i];
    out[lane] = sum / largest;
}

bool warp_barrier(bool bug)
{
    buffer<float> x(32), out(32);
    stream q;

    for (size_t i = 0; i < 32; i++)
        x.host[i] = (float)(i % 4 + 1);
    x.put();
    LAUNCH(rows, dim3(1), dim3(32), 0, q.s, out.device, x.device, !bug);
    for (float v : out.get())
        if (v != 2.5f)
            return false;
    return true;
}

__global__ void diverged(float *out, bool bug)
{
    if (bug && threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

bool diverged_barrier(bool bug)
{
    buffer<float> out(64);
    stream q;

    LAUNCH(diverged, dim3(1), dim3(64), 0, q.s, out.device, bug);
    return out.get()[63] == 1;
}

__global__ void stuck(float *out, bool bug)
{
    if (bug && threadIdx.x < 16)
        __syncwarp();
    __syncthreads();
    out[threadIdx.x] = 1;
}

bool barrier_in_branch(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(stuck, dim3(1), dim3(32), 0, q.s, out.device, bug);
    return out.get()[31] == 1;
}

} // namespace

const std::vector<planted> planted_barriers = {
    { "first_barrier", first_barrier },
    { "second_barrier", second_barrier },
    { "barrier_after_load", barrier_after_load },
    { "barrier_before_load", barrier_before_load },
    { "warp_barrier", warp_barrier },
    { "diverged_barrier", diverged_barrier },
    { "barrier_in_branch", barrier_in_branch },
};
