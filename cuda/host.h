/* What the host side's files share: devices, memory, the slots that are no kernels. */
#ifndef CUDA_HOST_H
#define CUDA_HOST_H
#include "cuda/queue.h"

extern const struct memory cuda_memory; /* of the device */
extern const struct memory cuda_pinned; /* of the host, for transfers beside computing */

/* device.c. The device of a node's rank; E_RESOURCE with the cure if there is none that we can use.
 * Makes no context, so that every rank may ask. */
enum status cuda_device_of(int local_rank, int *device, struct err *e) LOCAL;
enum status cuda_probe(int local_rank, struct err *e) LOCAL;
void cuda_device(struct queue *q, struct ops_device *d) LOCAL;
/* Nominal dense FLOP/s of the device, from its data sheet. */
double cuda_measure_peak(struct queue *q, enum dtype t, double seconds) LOCAL;

/* queue.c */
enum status cuda_queue_create(struct queue **q, int threads, int local_rank, struct err *e) LOCAL;
void cuda_queue_free(struct queue *q) LOCAL;
void cuda_sync(struct queue *q) LOCAL;
void cuda_upload(struct queue *q, dptr dst, const void *src, size_t bytes) LOCAL;
void cuda_download(struct queue *q, void *dst, dptr src, size_t bytes) LOCAL;
void cuda_copy(struct queue *q, dptr dst, dptr src, size_t bytes) LOCAL;
void cuda_zero(struct queue *q, dptr dst, size_t bytes) LOCAL;

/* lanes.c */
extern const struct lanes cuda_lanes;
void cuda_lanes_close(struct queue *q) LOCAL; /* also of a queue without */

/* products.c */
enum status cuda_products_create(struct queue *q, struct err *e) LOCAL; /* q->blas */
void cuda_products_free(struct queue *q) LOCAL;
void cuda_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                 struct operand w, int64_t T, int64_t N, int64_t K, int add) LOCAL;
void cuda_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                            int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K,
                            int add) LOCAL;
void cuda_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                             struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K) LOCAL;
#endif
