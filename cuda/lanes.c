#include "cuda/host.h"

static enum status lanes_open(struct queue *q, int points, struct err *e)
{
    cudaError_t code = cudaSuccess;
    BUG_IF(q->points);
    q->points = mem_take(sizeof *q->points * (size_t)points);
    q->npoints = points;
    q->lane[LANE_COMPUTE] = q->stream;
    for (int l = LANE_OUT; l < LANES && code == cudaSuccess; l++) {
        code = cudaStreamCreateWithFlags(&q->lane[l], cudaStreamNonBlocking);
    }
    for (int i = 0; i < points && code == cudaSuccess; i++) {
        code = cudaEventCreateWithFlags(&q->points[i], cudaEventDisableTiming);
    }
    if (code == cudaSuccess) {
        return OK;
    }
    return err_set(e, E_RESOURCE, "CUDA device %d: no streams for copies: %s (%s)", q->device,
                   cudaGetErrorString(code), cudaGetErrorName(code));
}

void cuda_lanes_close(struct queue *q)
{
    for (int l = LANE_OUT; l < LANES; l++) {
        if (q->lane[l]) {
            cudaStreamSynchronize(q->lane[l]);
            cudaStreamDestroy(q->lane[l]);
        }
    }
    for (int i = 0; i < q->npoints; i++) {
        if (q->points[i]) {
            cudaEventDestroy(q->points[i]);
        }
    }
    mem_give(q->points);
}

static void lane_copy(struct queue *q, enum ops_lane l, dptr dst, dptr src, size_t bytes)
{
    static const enum cudaMemcpyKind kinds[LANES] = {
        [LANE_OUT] = cudaMemcpyDeviceToHost, [LANE_IN] = cudaMemcpyHostToDevice
    };
    if (bytes > 0) {
        cuda_check(cudaMemcpyAsync(dst.p, src.p, bytes, kinds[l], q->lane[l]), "a lane's copy");
    }
}

static void lane_mark(struct queue *q, enum ops_lane l, int point)
{
    cuda_check(cudaEventRecord(q->points[point], q->lane[l]), "a lane's point");
}

static void lane_wait(struct queue *q, enum ops_lane l, int point)
{
    cuda_check(cudaStreamWaitEvent(q->lane[l], q->points[point], 0), "a lane's wait");
}

const struct lanes cuda_lanes = {
    .open = lanes_open, .copy = lane_copy, .mark = lane_mark, .wait = lane_wait
};
