/* What both communication backends share: a communicator for device memory keeps the one for host
 * memory that it was made of. */
#ifndef CUDA_COMM_HOST_H
#define CUDA_COMM_HOST_H
#include "cuda/queue.h"
#include "parallel/comm.h"

struct device_comm { /* the first member of what comm->impl points to */
    struct comm self;
    struct comm *host;
};
static inline struct device_comm *device_comm_of(struct comm *c)
{
    return (struct device_comm *)c->impl;
}
void device_comm_init(struct device_comm *d, struct comm *host, const struct comm_ops *ops);

/* Slots of comm_ops: control goes to the host communicator. */
void device_comm_reduce(struct comm *c, void *x, int n, enum dtype t, enum comm_op op);
void device_comm_broadcast(struct comm *c, void *p, size_t bytes, int root);
void device_comm_gather(struct comm *c, const void *mine, void *all, size_t bytes_each);
void device_comm_barrier(struct comm *c);

/* In a wait loop: yield, then sleep. Zeroed before it. */
struct device_pause {
    int idle;
};
void device_pause(struct device_pause *p, int moved);

int64_t device_comm_before(const int64_t *counts, int n); /* their sum */
/* bytes may be 0, to may be from */
void device_copy(dptr to, dptr from, int64_t bytes, cudaStream_t stream);
cudaEvent_t device_event_create(void);
/* The answer of a query: 0 not ready, which is also forgotten as the last error; 1 ready */
int device_over(cudaError_t e, const char *what);
#endif
