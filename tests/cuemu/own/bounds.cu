/* bounds.cu - wrong addresses, memory that nobody wrote, blocks that disturb each other. */
#include "planted.h"

namespace
{

/* The sum of the last row of n elements, or of one more. */
__global__ void last_row(float *out, const float *x, int n)
{
    float sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    out[threadIdx.x] = sum;
}

bool row_overrun(bool bug)
{
    buffer<float> x(64), out(32);
    stream q;

    x.host.assign(64, 1);
    x.put();
    LAUNCH(last_row, dim3(1), dim3(32), 0, q.s, out.device, x.device + 32, bug ? 33 : 32);
    return out.get()[0] == 32;
}

__global__ void neighbours(float *out, int shift)
{
    SHARED_ARRAY(float, s, 33);

    if (threadIdx.x == 0)
        s[0] = 1;
    s[(int)threadIdx.x + shift] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 1];
}

bool shared_overrun(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(neighbours, dim3(1), dim3(32), 0, q.s, out.device, bug ? 2 : 1);
    return out.get()[31] == 2;
}

/* Without the shift the last element is never written. */
bool shared_unwritten(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(neighbours, dim3(1), dim3(32), 0, q.s, out.device, bug ? 0 : 1);
    return out.get()[31] == 2;
}

__global__ void dynamic(float *out)
{
    DYN_SHARED(float, s);

    s[threadIdx.x] = (float)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}

bool dynamic_too_small(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(dynamic, dim3(1), dim3(32), (bug ? 31 : 32) * sizeof(float), q.s, out.device);
    return out.get()[31] == 0;
}

__global__ void vectors(float *out, const float *x)
{
    float4 v = reinterpret_cast<const float4 *>(x)[threadIdx.x];

    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

bool misaligned_vector(bool bug)
{
    buffer<float> x(132), out(32);
    stream q;

    x.host.assign(132, 1);
    x.put();
    LAUNCH(vectors, dim3(1), dim3(32), 0, q.s, out.device, x.device + (bug ? 1 : 4));
    return out.get()[31] == 4;
}

__global__ void count(int *n, bool atomic)
{
    if (threadIdx.x != 0)
        return;
    if (atomic)
        atomicAdd(n, 1);
    else
        *n += 1;
}

bool blocks_without_atomics(bool bug)
{
    buffer<int> n(1);
    stream q;

    LAUNCH(count, dim3(6), dim3(32), 0, q.s, n.device, !bug);
    return n.get()[0] == 6;
}

/* The block that comes last sums what all blocks have left. */
__global__ void last_block(float *out, float *part, unsigned *arrived, bool atomic)
{
    SHARED_ARRAY(bool, last, 1);

    if (threadIdx.x == 0) {
        part[blockIdx.x] = 1;
        __threadfence();
        if (atomic)
            last[0] = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
        else
            last[0] = ++*arrived == gridDim.x;
    }
    __syncthreads();
    if (!last[0] || threadIdx.x != 0)
        return;
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++)
        sum += part[i];
    *out = sum;
}

bool last_block_without_atomics(bool bug)
{
    buffer<float> part(8), out(1);
    buffer<unsigned> arrived(1);
    stream q;

    LAUNCH(last_block, dim3(8), dim3(32), 0, q.s, out.device, part.device, arrived.device, !bug);
    return out.get()[0] == 8;
}

__global__ void add_one(float *x)
{
    x[threadIdx.x] += 1;
}

bool device_unwritten(bool bug)
{
    buffer<float> out(32);
    stream q;
    float *x = nullptr;

    cudaMalloc(&x, 32 * sizeof(float));
    if (!bug)
        cudaMemset(x, 0, 32 * sizeof(float));
    cudaDeviceSynchronize();
    LAUNCH(add_one, dim3(1), dim3(32), 0, q.s, x);
    cudaStreamSynchronize(q.s);
    cudaMemcpy(out.host.data(), x, 32 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(x);
    return out.host[5] == 1;
}

bool device_freed(bool bug)
{
    buffer<float> out(32);
    stream q;
    float *x = nullptr;

    cudaMalloc(&x, 32 * sizeof(float));
    cudaMemset(x, 0, 32 * sizeof(float));
    if (bug)
        cudaFree(x);
    cudaDeviceSynchronize();
    LAUNCH(add_one, dim3(1), dim3(32), 0, q.s, x);
    cudaStreamSynchronize(q.s);
    return cudaGetLastError() == cudaSuccess && (bug || cudaFree(x) == cudaSuccess);
}

bool host_touches_device(bool bug)
{
    buffer<float> x(32);

    cudaMemset(x.device, 0, 32 * sizeof(float));
    cudaDeviceSynchronize();
    return (bug ? x.device : x.get().data())[3] == 0;
}

__global__ void follow(float *out, float *const *address)
{
    out[threadIdx.x] = *address[threadIdx.x];
}

bool wild_address(bool bug)
{
    buffer<float> out(32);
    buffer<float *> address(32);
    stream q;

    for (float *&a : address.host)
        a = bug ? nullptr : out.device;
    address.put();
    cudaMemset(out.device, 0, 32 * sizeof(float));
    cudaDeviceSynchronize();
    LAUNCH(follow, dim3(1), dim3(1), 0, q.s, out.device, address.device);
    return out.get()[0] == 0;
}

__global__ void recurse(float *out, int depth)
{
    float frame[1024];

    for (int i = 0; i < 1024; i++)
        frame[i] = (float)depth;
    if (depth > 0)
        recurse(out, depth - 1);
    out[threadIdx.x] = frame[depth % 1024];
}

bool stack_overflow(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(recurse, dim3(1), dim3(1), 0, q.s, out.device, bug ? 1000 : 3);
    return out.get()[0] == 3;
}

} // namespace

const std::vector<planted> planted_bounds = {
    { "row_overrun", row_overrun },
    { "shared_overrun", shared_overrun },
    { "shared_unwritten", shared_unwritten },
    { "dynamic_too_small", dynamic_too_small },
    { "misaligned_vector", misaligned_vector },
    { "blocks_without_atomics", blocks_without_atomics },
    { "last_block_without_atomics", last_block_without_atomics },
    { "device_unwritten", device_unwritten },
    { "device_freed", device_freed },
    { "host_touches_device", host_touches_device },
    { "wild_address", wild_address },
    { "stack_overflow", stack_overflow },
};
