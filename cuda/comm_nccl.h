/* Transfers over NCCL.
 *
 * A communicator has a channel, an NCCL communicator with a stream of its own, for collectives and
 * one for each tag of messages. A start makes the channel's stream wait for the queue's work so
 * far and puts the transfer there; a wait makes the queue wait for it and the host for nothing.
 *
 * No deadlock. NCCL has no tags and makes the transfers of a channel one after the other, a send
 * until its receive. Collectives of a channel start in the same order on all ranks. A pipeline's
 * action lists are made so (schedule/lower.c) that all their transfers have one order which every
 * rank's list follows: nothing waits in a circle even when each rank has a single queue. A
 * channel for each tag and one for each communicator only drop edges from that graph of waits. A
 * first transfer also connects its ranks, on the host and again in the order of the list. Kernels
 * of several channels run side by side: MOST_BLOCKS each, for all that a rank uses, are fewer than
 * a GPU has multiprocessors, and the streams fewer than CUDA's hardware queues (8), so that no
 * transfer keeps another from its place.
 *
 * Counts that are not equal go as one reduction or broadcast a piece, in one group. */
#ifndef CUDA_COMM_NCCL_H
#define CUDA_COMM_NCCL_H
#include "cuda/comm_host.h"

#include <nccl.h>

enum { MOST_BLOCKS = 16 };

struct channel {
    ncclComm_t nccl; /* NULL: not open */
    cudaStream_t stream;
    cudaEvent_t start; /* of the queue's work before a transfer */
    const char *name;  /* of the communicator                   */
};

struct flight { /* a transfer from start to wait */
    struct flight *next;
    struct channel *on;
    cudaEvent_t end;
};

struct nccl {
    struct device_comm base;
    struct flight *spare;
    int channels; /* 0: collectives, 1 + tag: messages */
    struct channel channel[];
};
static inline struct nccl *nccl_of(struct comm *c)
{
    return (struct nccl *)c->impl;
}
extern const struct comm_ops nccl_ops;

/* dies unless the call succeeded or goes on in the background */
void nccl_check(ncclResult_t rc, const char *call, const struct channel *on);
ncclResult_t nccl_state(const struct channel *on);
/* A call on a communicator that does not block goes on in the background; events and the next call
 * come after it. */
void nccl_finish_call(const struct channel *on);
#endif
