/* The queue of the CUDA backend. */
#ifndef CUDA_QUEUE_H
#define CUDA_QUEUE_H
#include <cuda_runtime_api.h>

struct queue {
    cudaStream_t stream; /* compute; all ops are queued here */
    void *blas;          /* cublasHandle_t */
    void *workspace;
    size_t workspace_bytes; /* cuBLAS, 32 MiB */
    char *partial;
    size_t partial_bytes; /* device scratch for fixed-order partial sums */
    int device, sm_count;
    int capability; /* 90 = sm_90 */
};
void cuda_check(cudaError_t e, const char *what); /* die(E_PEER, ...) unless success */
#endif
