/* The queue of the CUDA backend: one device of this rank, its streams, and the memory that
 * operations borrow. Everything that a step needs is allocated when it is created. For C and C++:
 * types of cuBLAS and NCCL are not seen here. */
#ifndef CUDA_QUEUE_H
#define CUDA_QUEUE_H
#ifdef __cplusplus
extern "C" {
#endif
#include "compute/ops.h"

#include <cuda_runtime_api.h>

enum {
    QUEUE_WORKSPACE = 32 << 20, /* cuBLAS: what NVIDIA recommends for Hopper */
    QUEUE_PARTIAL = 32 << 20,
    QUEUE_STAGES = 4, /* the host fills one while the device reads the others */
    QUEUE_STAGE = 2 << 20
};

struct queue {
    cudaStream_t stream; /* of computing: all operations, in order; does not wait for stream 0 */
    void *blas;          /* cublasHandle_t */
    void *workspace;
    size_t workspace_bytes;
    char *partial; /* scratch of one operation, for sums in a fixed order */
    size_t partial_bytes;
    int device, sm_count;
    int capability; /* 90: sm_90 */

    /* uploads: a ring of pinned memory, QUEUE_STAGES of QUEUE_STAGE bytes */
    char *stages;
    cudaEvent_t read[QUEUE_STAGES]; /* the device has read the stage */
    int stage;                      /* being filled */
    size_t filled;

    cudaStream_t lane[LANES]; /* lanes.c; [LANE_COMPUTE] is `stream`. NULL: not opened */
    cudaEvent_t *points;      /* [npoints] */
    int npoints;
};

/* die(E_PEER, ...) unless e is success; what: the operation. After each launch: cudaGetLastError().
 */
void cuda_check(cudaError_t e, const char *what) LOCAL;

#ifdef __cplusplus
}
#endif
#endif
