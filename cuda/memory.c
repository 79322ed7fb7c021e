#include "cuda/host.h"

#include <string.h>

/* One allocation an arena. */
static void *device_take(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    cuda_check(cudaMemset(p, 0, bytes), "zeroing an arena");
    cuda_check(cudaDeviceSynchronize(), "zeroing an arena"); /* our streams do not wait for 0 */
    return p;
}

static void device_give(void *p, size_t bytes)
{
    (void)bytes;
    cuda_check(cudaFree(p), "freeing an arena");
}

static void *pinned_take(size_t bytes)
{
    void *p = NULL;
    if (cudaMallocHost(&p, bytes) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return memset(p, 0, bytes);
}

static void pinned_give(void *p, size_t bytes)
{
    (void)bytes;
    cuda_check(cudaFreeHost(p), "freeing pinned memory");
}

const struct memory cuda_memory = { "device", device_take, device_give };
const struct memory cuda_pinned = { "pinned", pinned_take, pinned_give };
