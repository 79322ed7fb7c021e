/* streams.cu - waits that are forgotten between streams and the host. */
#include "planted.h"

namespace
{

__global__ void fill(float *x, float v)
{
    x[threadIdx.x] = v;
}

__global__ void twice(float *y, const float *x)
{
    y[threadIdx.x] = 2 * x[blockDim.x - 1 - threadIdx.x];
}

bool stream_wait(bool bug)
{
    buffer<float> x(32), y(32);
    stream a, b;
    cudaEvent_t filled;

    cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
    LAUNCH(fill, dim3(1), dim3(32), 0, a.s, x.device, 3.0f);
    cudaEventRecord(filled, a.s);
    if (!bug)
        cudaStreamWaitEvent(b.s, filled);
    LAUNCH(twice, dim3(1), dim3(32), 0, b.s, y.device, x.device);
    cudaStreamSynchronize(b.s);
    cudaMemcpy(y.host.data(), y.device, 32 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaEventDestroy(filled);
    return y.host[7] == 6;
}

/* The stream that refills does not wait for the one that reads. */
bool refilled_too_early(bool bug)
{
    buffer<float> x(32), y(32);
    stream a, b;
    cudaEvent_t read;

    cudaEventCreateWithFlags(&read, cudaEventDisableTiming);
    LAUNCH(fill, dim3(1), dim3(32), 0, a.s, x.device, 3.0f);
    LAUNCH(twice, dim3(1), dim3(32), 0, a.s, y.device, x.device);
    cudaEventRecord(read, a.s);
    if (!bug)
        cudaStreamWaitEvent(b.s, read);
    LAUNCH(fill, dim3(1), dim3(32), 0, b.s, x.device, 5.0f);
    cudaStreamSynchronize(a.s);
    bool right = y.get()[7] == 6 && x.get()[7] == 5;
    cudaEventDestroy(read);
    return right;
}

/* The second record is not the one that was waited for. */
bool event_recorded_too_early(bool bug)
{
    buffer<float> x(32), y(32);
    stream a, b;
    cudaEvent_t filled;

    cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
    if (bug)
        cudaEventRecord(filled, a.s);
    LAUNCH(fill, dim3(1), dim3(32), 0, a.s, x.device, 3.0f);
    if (!bug)
        cudaEventRecord(filled, a.s);
    cudaStreamWaitEvent(b.s, filled);
    cudaEventRecord(filled, a.s);
    LAUNCH(twice, dim3(1), dim3(32), 0, b.s, y.device, x.device);
    cudaStreamSynchronize(b.s);
    cudaMemcpy(y.host.data(), y.device, 32 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaEventDestroy(filled);
    return y.host[7] == 6;
}

bool pinned_reused(bool bug)
{
    buffer<float> x(32);
    stream q;
    float *pinned = nullptr;

    cudaMallocHost(&pinned, 32 * sizeof(float));
    for (int i = 0; i < 32; i++)
        pinned[i] = 4;
    cudaMemcpyAsync(x.device, pinned, 32 * sizeof(float), cudaMemcpyHostToDevice, q.s);
    if (!bug)
        cudaStreamSynchronize(q.s);
    for (int i = 0; i < 32; i++)
        pinned[i] = 5;
    bool right = x.get()[9] == 4;
    cudaFreeHost(pinned);
    return right;
}

bool download_read_early(bool bug)
{
    buffer<float> x(32);
    stream q;
    float *pinned = nullptr;

    cudaMallocHost(&pinned, 32 * sizeof(float));
    LAUNCH(fill, dim3(1), dim3(32), 0, q.s, x.device, 3.0f);
    cudaMemcpyAsync(pinned, x.device, 32 * sizeof(float), cudaMemcpyDeviceToHost, q.s);
    if (!bug)
        cudaStreamSynchronize(q.s);
    bool right = pinned[3] == 3;
    cudaFreeHost(pinned);
    return right;
}

/* cudaMemcpy orders itself after blocking streams only. */
bool non_blocking_stream(bool bug)
{
    buffer<float> x(32);
    cudaStream_t s;

    cudaStreamCreateWithFlags(&s, bug ? cudaStreamNonBlocking : cudaStreamDefault);
    LAUNCH(fill, dim3(1), dim3(32), 0, s, x.device, 3.0f);
    cudaMemcpy(x.host.data(), x.device, 32 * sizeof(float), cudaMemcpyDeviceToHost);
    cudaStreamDestroy(s);
    return x.host[3] == 3;
}

} // namespace

const std::vector<planted> planted_streams = {
    { "stream_wait", stream_wait },
    { "refilled_too_early", refilled_too_early },
    { "event_recorded_too_early", event_recorded_too_early },
    { "pinned_reused", pinned_reused },
    { "download_read_early", download_read_early },
    { "non_blocking_stream", non_blocking_stream },
};
