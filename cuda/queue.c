#include "cuda/host.h"

#include "cuda/attention_choice.h"

#include <string.h>

void cuda_check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        die(E_PEER, "CUDA, %s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
    }
}

static cudaError_t make_streams(struct queue *q)
{
    cudaError_t e = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    for (int i = 0; i < QUEUE_STAGES && e == cudaSuccess; i++) {
        e = cudaEventCreateWithFlags(&q->read[i], cudaEventDisableTiming);
    }
    return e;
}

static cudaError_t take_memory(struct queue *q)
{
    void *partial = NULL, *stages = NULL;
    cudaError_t e = cudaMalloc(&q->workspace, q->workspace_bytes = QUEUE_WORKSPACE);
    if (e == cudaSuccess) {
        e = cudaMalloc(&partial, q->partial_bytes = QUEUE_PARTIAL);
    }
    if (e == cudaSuccess) {
        e = cudaMallocHost(&stages, (size_t)QUEUE_STAGES * QUEUE_STAGE);
    }
    q->partial = partial;
    q->stages = stages;
    return e;
}

static cudaError_t open_device(struct queue *q)
{
    int major = 0, minor = 0;
    cudaError_t e = cudaSetDevice(q->device);
    if (e == cudaSuccess) {
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, q->device);
    }
    if (e == cudaSuccess) {
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, q->device);
    }
    if (e == cudaSuccess) {
        e = cudaDeviceGetAttribute(&q->sm_count, cudaDevAttrMultiProcessorCount, q->device);
    }
    q->capability = 10 * major + minor;
    return e;
}

enum status cuda_queue_create(struct queue **queue, int threads, int local_rank, struct err *e)
{
    int device;
    enum status st = cuda_device_of(local_rank, &device, e);
    (void)threads;
    if (st != OK) {
        return st;
    }
    struct queue *q = mem_take(sizeof *q);
    q->device = device;
    cudaError_t code = open_device(q);
    if (code == cudaSuccess) {
        code = make_streams(q);
    }
    if (code == cudaSuccess) {
        code = take_memory(q);
    }
    if (code != cudaSuccess) {
        st = err_set(e, E_RESOURCE,
                     "CUDA device %d cannot be opened: %s (%s); is it in use by another program?",
                     device, cudaGetErrorString(code), cudaGetErrorName(code));
    } else {
        st = cuda_products_create(q, e);
    }
    if (st != OK) {
        cuda_queue_free(q);
        return st;
    }
    *queue = q;
    return OK;
}

void cuda_queue_free(struct queue *q)
{
    if (q->stream) {
        cudaStreamSynchronize(q->stream);
    }
    choice_forget(q);
    cuda_lanes_close(q);
    cuda_products_free(q);
    for (int i = 0; i < QUEUE_STAGES; i++) {
        if (q->read[i]) {
            cudaEventDestroy(q->read[i]);
        }
    }
    if (q->stream) {
        cudaStreamDestroy(q->stream);
    }
    cudaFreeHost(q->stages);
    cudaFree(q->partial);
    cudaFree(q->workspace);
    mem_give(q);
}

void cuda_sync(struct queue *q)
{
    cuda_check(cudaStreamSynchronize(q->stream), "queued work");
}

/* The next stage, once the device has read what was in it. */
static void turn_stage(struct queue *q)
{
    cuda_check(cudaEventRecord(q->read[q->stage], q->stream), "upload");
    q->stage = (q->stage + 1) % QUEUE_STAGES;
    q->filled = 0;
    cuda_check(cudaEventSynchronize(q->read[q->stage]), "upload");
}

/* cudaMemcpyAsync promises to leave src alone only for pinned memory, and of pageable memory it may
 * wait for all that the stream holds; so what is uploaded goes through a ring of our own. */
void cuda_upload(struct queue *q, dptr dst, const void *src, size_t bytes)
{
    const char *from = src;
    for (size_t n; bytes > 0; dst.p += n, from += n, bytes -= n) {
        if (q->filled == QUEUE_STAGE) {
            turn_stage(q);
        }
        n = (size_t)min_i64((int64_t)bytes, QUEUE_STAGE - (int64_t)q->filled);
        char *stage = q->stages + (size_t)q->stage * QUEUE_STAGE + q->filled;
        memcpy(stage, from, n);
        cuda_check(cudaMemcpyAsync(dst.p, stage, n, cudaMemcpyHostToDevice, q->stream), "upload");
        q->filled = (size_t)min_i64(QUEUE_STAGE, ceil_div((int64_t)(q->filled + n), 64) * 64);
    }
}

void cuda_download(struct queue *q, void *dst, dptr src, size_t bytes)
{
    if (bytes > 0) {
        cuda_check(cudaMemcpyAsync(dst, src.p, bytes, cudaMemcpyDeviceToHost, q->stream),
                   "download");
    }
}

void cuda_copy(struct queue *q, dptr dst, dptr src, size_t bytes)
{
    if (bytes > 0) {
        cuda_check(cudaMemcpyAsync(dst.p, src.p, bytes, cudaMemcpyDeviceToDevice, q->stream),
                   "copy");
    }
}

void cuda_zero(struct queue *q, dptr dst, size_t bytes)
{
    if (bytes > 0) {
        cuda_check(cudaMemsetAsync(dst.p, 0, bytes, q->stream), "zero");
    }
}
