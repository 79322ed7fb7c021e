/* host.cu - the runtime API: memory, streams, events, devices, errors. */
#include "emulation.h"
#include <cstdlib>
#include <cstring>

namespace
{

bool lazy()
{
    const char *s = getenv("CUEMU_STREAMS");

    return s && !strcmp(s, "lazy");
}

__global__ void fill(float *x, float v)
{
    x[threadIdx.x] = v;
}

bool memory_is_counted()
{
    size_t before, during, after, total;
    void *p = nullptr, *q = nullptr;

    setenv("CUEMU_MEMORY", "2", 1);
    bool ok = cudaMemGetInfo(&before, &total) == cudaSuccess && total == 2 << 20 &&
              cudaMalloc(&p, 1 << 20) == cudaSuccess;
    cudaMemGetInfo(&during, &total);
    ok = ok && before - during == 1 << 20 && cudaMalloc(&q, total) == cudaErrorMemoryAllocation &&
         !q && cudaGetLastError() == cudaErrorMemoryAllocation && cudaFree(p) == cudaSuccess;
    cudaMemGetInfo(&after, &total);
    unsetenv("CUEMU_MEMORY");
    return ok && after == before && cudaFree(nullptr) == cudaSuccess;
}

bool pointers_are_known()
{
    struct cudaPointerAttributes a;
    float *device = nullptr, *pinned = nullptr, host;

    cudaMalloc(&device, 64);
    cudaMallocHost(&pinned, 64);
    bool ok =
        cudaPointerGetAttributes(&a, device + 15) == cudaSuccess && a.type == cudaMemoryTypeDevice;
    cudaPointerGetAttributes(&a, pinned + 15);
    ok = ok && a.type == cudaMemoryTypeHost;
    cudaPointerGetAttributes(&a, &host);
    ok = ok && a.type == cudaMemoryTypeUnregistered && cudaFree(pinned) == cudaErrorInvalidValue &&
         cudaFreeHost(device) == cudaErrorInvalidValue && cudaFree(device) == cudaSuccess &&
         cudaFreeHost(pinned) == cudaSuccess && cudaFree(device) == cudaErrorInvalidValue;
    cudaGetLastError();
    return ok;
}

bool rectangles_are_copied()
{
    buffer<float> x(24);
    float small[6] = {};
    stream q;

    for (size_t i = 0; i < 24; i++)
        x.host[i] = (float)i;
    x.put();
    bool ok =
        cudaMemcpy2DAsync(small, 8, x.device + 1, 32, 8, 3, cudaMemcpyDefault, q.s) == cudaSuccess;
    cudaStreamSynchronize(q.s);
    return ok && small[0] == 1 && small[1] == 2 && small[2] == 9 && small[5] == 18;
}

/* Pageable memory may be reused at once, pinned memory is read when the stream gets there. */
bool uploads_read_host_memory()
{
    buffer<float> x(2);
    stream q;
    float pageable = 1, *pinned = nullptr;

    cudaMallocHost(&pinned, sizeof *pinned);
    *pinned = 1;
    cudaMemcpyAsync(x.device, &pageable, 4, cudaMemcpyHostToDevice, q.s);
    pageable = 2;
    cudaMemcpyAsync(x.device + 1, pinned, 4, cudaMemcpyHostToDevice, q.s);
    x.get();
    cudaFreeHost(pinned);
    return x.host[0] == 1 && x.host[1] == 1;
}

void append(void *data)
{
    std::vector<int> *list = static_cast<std::vector<int> *>(data);

    list->push_back((int)list->size());
}

bool host_functions_run_in_order()
{
    std::vector<int> list;
    stream q;

    for (int i = 0; i < 3; i++)
        cudaLaunchHostFunc(q.s, append, &list);
    bool ok = !lazy() || list.empty();
    cudaStreamSynchronize(q.s);
    return ok && list.size() == 3 && list[2] == 2;
}

bool events_tell_what_is_done()
{
    buffer<float> x(32);
    stream q;
    cudaEvent_t start, end, untimed;
    float ms = -1;

    cudaEventCreate(&start);
    cudaEventCreate(&end);
    cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
    bool ok = cudaEventQuery(start) == cudaSuccess;
    cudaEventRecord(start, q.s);
    LAUNCH(fill, dim3(1), dim3(32), 0, q.s, x.device, 1.0f);
    cudaEventRecord(end, q.s);
    cudaEventRecord(untimed, q.s);
    if (lazy())
        ok = ok && cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady &&
             cudaStreamQuery(q.s) == cudaErrorNotReady && cudaEventQuery(end) == cudaErrorNotReady;
    for (int i = 0; i < 10 && cudaEventQuery(end) != cudaSuccess; i++) {
    }
    ok = ok && cudaEventQuery(end) == cudaSuccess &&
         cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 0 && ms < 60000;
    cudaEventSynchronize(untimed);
    ok = ok && cudaStreamQuery(q.s) == cudaSuccess &&
         cudaEventElapsedTime(&ms, start, untimed) == cudaErrorInvalidResourceHandle &&
         x.get()[0] == 1;
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    cudaEventDestroy(untimed);
    cudaGetLastError();
    return ok;
}

/* a fills, the null stream comes after it, b after the null stream. */
bool null_stream_orders()
{
    buffer<float> x(32), y(32), z(32);
    cudaStream_t a, b;

    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    LAUNCH(fill, dim3(1), dim3(32), 0, a, x.device, 7.0f);
    cudaMemcpyAsync(y.device, x.device, 128, cudaMemcpyDeviceToDevice);
    cudaMemcpyAsync(z.device, y.device, 128, cudaMemcpyDeviceToDevice, b);
    cudaStreamSynchronize(b);
    bool ok =
        cudaMemcpyAsync(z.host.data(), z.device, 128, cudaMemcpyDeviceToHost, b) == cudaSuccess;
    cudaStreamSynchronize(b);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    return ok && z.host[31] == 7 && cudaStreamSynchronize(a) == cudaErrorInvalidResourceHandle &&
           cudaGetLastError() == cudaErrorInvalidResourceHandle;
}

bool devices_are_apart()
{
    struct cudaDeviceProp first, second;
    cudaStream_t other;
    int n = 0, major = 0, device = -1;
    buffer<float> x(32);

    setenv("CUEMU_DEVICES", "2", 1);
    setenv("CUEMU_CAPABILITY", "80", 1);
    bool ok = cudaGetDeviceCount(&n) == cudaSuccess && n == 2 &&
              cudaGetDeviceProperties(&first, 0) == cudaSuccess &&
              cudaGetDeviceProperties(&second, 1) == cudaSuccess &&
              memcmp(&first.uuid, &second.uuid, sizeof first.uuid) != 0 &&
              cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1) == cudaSuccess &&
              major == 8 && first.major == 8 && first.minor == 0 &&
              cudaSetDevice(2) == cudaErrorInvalidDevice && cudaSetDevice(1) == cudaSuccess &&
              cudaGetDevice(&device) == cudaSuccess && device == 1;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaSetDevice(0);
    cudaGetLastError();
    LAUNCH(fill, dim3(1), dim3(32), 0, other, x.device, 1.0f);
    ok = ok && cudaGetLastError() == cudaErrorInvalidResourceHandle;
    cudaSetDevice(1);
    cudaStreamDestroy(other);
    cudaSetDevice(0);
    unsetenv("CUEMU_DEVICES");
    unsetenv("CUEMU_CAPABILITY");
    return ok;
}

bool driver_is(const char *kind, int version, cudaError_t error)
{
    int v = -1, n = -1;
    void *p;

    setenv("CUEMU_DRIVER", kind, 1);
    bool ok = cudaDriverGetVersion(&v) == cudaSuccess && v == version &&
              cudaGetDeviceCount(&n) == error && n == 0 && cudaMalloc(&p, 4) == error &&
              cudaSetDevice(0) == error && cudaGetLastError() == error &&
              cudaRuntimeGetVersion(&v) == cudaSuccess && v == CUDART_VERSION;
    unsetenv("CUEMU_DRIVER");
    return ok;
}

bool machines_without_a_device()
{
    return driver_is("none", 0, cudaErrorInsufficientDriver) &&
           driver_is("old", 12020, cudaErrorInsufficientDriver) &&
           driver_is("nodevice", CUDART_VERSION, cudaErrorNoDevice);
}

bool errors_stay_until_asked()
{
    cudaSetDevice(77);
    bool ok = cudaPeekAtLastError() == cudaErrorInvalidDevice &&
              cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess;
    return ok && !strcmp(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice") &&
           !strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

} // namespace

const std::vector<check> host_checks = {
    { "device memory is counted and may run out", memory_is_counted },
    { "pointers are known by their memory", pointers_are_known },
    { "rectangles are copied", rectangles_are_copied },
    { "uploads read pageable memory at once", uploads_read_host_memory },
    { "host functions run in order", host_functions_run_in_order },
    { "events tell what is done and how long it took", events_tell_what_is_done },
    { "the null stream orders blocking streams", null_stream_orders },
    { "streams belong to devices", devices_are_apart },
    { "machines without driver or device", machines_without_a_device },
    { "errors stay until asked for", errors_stay_until_asked },
};
