/* warps.cu - warp operations that not every named lane reaches. */
#include "planted.h"

namespace
{

constexpr unsigned ALL = 0xffffffffu;

__global__ void neighbour(float *out, unsigned mask)
{
    float v = (float)threadIdx.x;

    out[threadIdx.x] = v + __shfl_xor_sync(mask, v, 1);
}

bool run_neighbour(unsigned threads, unsigned mask)
{
    buffer<float> out(64);
    stream q;

    LAUNCH(neighbour, dim3(1), dim3(threads), 0, q.s, out.device, mask);
    return out.get()[31] == 61;
}

/* 48 threads: the second warp has half its lanes. */
bool absent_lane(bool bug)
{
    return run_neighbour(bug ? 48 : 64, ALL);
}

bool lane_outside_mask(bool bug)
{
    return run_neighbour(32, bug ? 0xfffffff0u : ALL);
}

__global__ void early(float *out, unsigned mask, bool bug)
{
    if (bug && threadIdx.x >= 16)
        return;
    out[threadIdx.x] = __shfl_xor_sync(mask, 2.0f, 1);
}

bool exited_lane(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(early, dim3(1), dim3(32), 0, q.s, out.device, ALL, bug);
    return out.get()[15] == 2;
}

__global__ void branches(float *out, bool bug)
{
    float v = 1;

    if (bug && threadIdx.x % 2)
        v += __shfl_xor_sync(ALL, v, 1);
    else
        v += __shfl_xor_sync(ALL, v, 2);
    out[threadIdx.x] = v;
}

bool different_operations(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(branches, dim3(1), dim3(32), 0, q.s, out.device, bug);
    return out.get()[0] == 2;
}

__global__ void groups(float *out, int width)
{
    float v = (float)threadIdx.x;

    out[threadIdx.x] = __shfl_sync(ALL, v, 1, width);
}

bool shuffle_width(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(groups, dim3(1), dim3(32), 0, q.s, out.device, bug ? 12 : 8);
    return out.get()[31] == 25;
}

__global__ void half_product(float *out, bool bug)
{
    float d[4] = {};
    uint32_t a[4] = {}, b[2] = {};

    if (!bug || threadIdx.x < 16)
        mma_m16n8k16_bf16(d, a, b);
    out[threadIdx.x] = d[0] + 1;
}

bool half_a_warp_multiplies(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(half_product, dim3(1), dim3(32), 0, q.s, out.device, bug);
    return out.get()[0] == 1;
}

} // namespace

const std::vector<planted> planted_warps = {
    { "absent_lane", absent_lane },     { "lane_outside_mask", lane_outside_mask },
    { "exited_lane", exited_lane },     { "different_operations", different_operations },
    { "shuffle_width", shuffle_width }, { "half_a_warp_multiplies", half_a_warp_multiplies },
};
