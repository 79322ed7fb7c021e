/* launches.cu - launches that a device refuses. A refused one is an error, so the result is wrong.
 */
#include "planted.h"

namespace
{

__global__ void write_index(float *out)
{
    out[threadIdx.x] = (float)threadIdx.x;
}

bool too_many_threads(bool bug)
{
    buffer<float> out(2048);
    stream q;

    LAUNCH(write_index, dim3(1), dim3(bug ? 2048 : 1024), 0, q.s, out.device);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && out.get()[1023] == 1023;
}

bool empty_grid(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(write_index, dim3(bug ? 0 : 1), dim3(32), 0, q.s, out.device);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && out.get()[31] == 31;
}

__global__ void write_row(float *out)
{
    out[blockIdx.y] = (float)blockIdx.y;
}

bool grid_too_high(bool bug)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(write_row, dim3(1, bug ? 65536 : 32), dim3(1), 0, q.s, out.device);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && out.get()[31] == 31;
}

__global__ void much_shared(float *out)
{
    DYN_SHARED(float, s);

    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x];
}

__global__ void much_shared_opted(float *out)
{
    DYN_SHARED(float, s);

    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x];
}

bool launched(void (*kernel)(float *), size_t shared)
{
    buffer<float> out(32);
    stream q;

    LAUNCH(kernel, dim3(1), dim3(32), shared, q.s, out.device);
    cudaError_t e = cudaGetLastError();
    return e == cudaSuccess && out.get()[31] == 1;
}

bool shared_not_opted_in(bool bug)
{
    cudaFuncSetAttribute(much_shared_opted, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10);
    return bug ? launched(much_shared, 64 << 10) : launched(much_shared_opted, 64 << 10);
}

bool shared_beyond_device(bool bug)
{
    int bytes = bug ? 228 << 10 : 227 << 10;

    return cudaFuncSetAttribute(much_shared_opted, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                bytes) == cudaSuccess &&
           launched(much_shared_opted, (size_t)bytes);
}

template <int N> __global__ void fixed_shared(float *out)
{
    SHARED_ARRAY(float, s, N);

    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[threadIdx.x];
}

bool fixed_shared_too_large(bool bug)
{
    return bug ? launched(fixed_shared<12289>, 0) : launched(fixed_shared<12288>, 0);
}

/* The kernel needs the fixed 4 KB too. */
bool shared_sum_too_large(bool bug)
{
    cudaFuncSetAttribute(fixed_shared<1024>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         227 << 10);
    return launched(fixed_shared<1024>, (size_t)(bug ? 224 << 10 : 223 << 10));
}

bool copy_past_block(bool bug)
{
    buffer<float> out(32);
    float host[33] = {};

    return cudaMemcpy(host, out.device, (bug ? 33 : 32) * sizeof(float), cudaMemcpyDeviceToHost) ==
           cudaSuccess;
}

bool copy_direction(bool bug)
{
    buffer<float> out(32);
    float host[32] = {};

    return cudaMemcpy(host, out.device, sizeof host,
                      bug ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost) == cudaSuccess;
}

} // namespace

const std::vector<planted> planted_launches = {
    { "too_many_threads", too_many_threads },
    { "empty_grid", empty_grid },
    { "grid_too_high", grid_too_high },
    { "shared_not_opted_in", shared_not_opted_in },
    { "shared_beyond_device", shared_beyond_device },
    { "fixed_shared_too_large", fixed_shared_too_large },
    { "shared_sum_too_large", shared_sum_too_large },
    { "copy_past_block", copy_past_block },
    { "copy_direction", copy_direction },
};
