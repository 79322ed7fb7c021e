#include "cuda/comm_host.h"

#include "base/clock.h"

#include <sched.h>

/* Idle rounds before a wait loop sleeps, and how long it does. */
enum { YIELDS = 100 };
#define NAP 50e-6

void device_comm_init(struct device_comm *d, struct comm *host, const struct comm_ops *ops)
{
    d->self = (struct comm){
        .rank = host->rank, .size = host->size, .name = host->name, .ops = ops, .impl = d
    };
    d->host = host;
}

void device_comm_reduce(struct comm *c, void *x, int n, enum dtype t, enum comm_op op)
{
    struct comm *host = device_comm_of(c)->host;

    host->ops->host_reduce(host, x, n, t, op);
}

void device_comm_broadcast(struct comm *c, void *p, size_t bytes, int root)
{
    comm_bytes_from(device_comm_of(c)->host, p, bytes, root);
}

void device_comm_gather(struct comm *c, const void *mine, void *all, size_t bytes_each)
{
    comm_bytes_all(device_comm_of(c)->host, mine, all, bytes_each);
}

void device_comm_barrier(struct comm *c)
{
    comm_barrier(device_comm_of(c)->host);
}

void device_pause(struct device_pause *p, int moved)
{
    p->idle = moved ? 0 : p->idle + 1;
    if (p->idle <= YIELDS)
        sched_yield();
    else
        clock_sleep(NAP);
}

int64_t device_comm_before(const int64_t *counts, int n)
{
    int64_t s = 0;

    for (int i = 0; i < n; i++)
        s += counts[i];
    return s;
}

void device_copy(dptr to, dptr from, int64_t bytes, cudaStream_t stream)
{
    if (bytes > 0 && to.p != from.p)
        cuda_check(cudaMemcpyAsync(to.p, from.p, (size_t)bytes, cudaMemcpyDeviceToDevice, stream),
                   "cudaMemcpyAsync");
}

cudaEvent_t device_event_create(void)
{
    cudaEvent_t e;

    cuda_check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
    return e;
}

int device_over(cudaError_t e, const char *what)
{
    if (e == cudaErrorNotReady) {
        cudaGetLastError();
        return 0;
    }
    cuda_check(e, what);
    return 1;
}
