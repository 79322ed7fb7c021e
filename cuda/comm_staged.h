/* Transfers of device memory through pinned host memory and a communicator for host memory.
 *
 * A transfer is cut into windows, alike on all its ranks. A window goes down (device to a pinned
 * chunk), over (the host communicator's transfer of the chunk) and up (chunk to device); two
 * windows of a transfer are on their way at a time. A lane makes its transfers one after the other
 * in the order of their start: one lane for collectives, so that those of the host communicator
 * come in one order on all ranks, and one for each tag and direction of messages, so that a message
 * that its receiver does not want yet holds up only later ones of its tag. Every wait moves all
 * lanes of all communicators: ranks may wait for their requests in any order.
 *
 * The copies of a communicator share a stream, which waits for events recorded before and never
 * for another rank. */
#ifndef CUDA_COMM_STAGED_H
#define CUDA_COMM_STAGED_H
#include "cuda/comm_host.h"

enum { SLOTS = 2, CHUNK_BYTES = 4 << 20 };

/* What a window moves between a chunk and the device. */
enum span {
    SPAN_NONE,
    SPAN_FLAT,   /* one piece                                                    */
    SPAN_OWN,    /* my piece alone on the device, at its place among all in the chunk */
    SPAN_PIECES, /* all pieces                                                   */
    SPAN_OTHERS  /* all but mine                                                 */
};

struct transfer {
    struct transfer *next;
    const struct kind *kind;
    enum dtype type;
    enum comm_op op;
    int peer, tag; /* messages; broadcast: the root */
    int begun, done;
    char *in, *out;
    int64_t *send, *recv;       /* [size] elements of the pieces; flat: [0]  */
    int64_t step;               /* elements of a piece that a window takes   */
    int64_t windows;            /* their number */
    int64_t went[3];            /* windows that went down, over and up       */
    struct request agreeing;    /* on windows                                */
    cudaEvent_t start, arrived; /* the queue's work before; the last copy up */
};
enum { DOWN, OVER, UP };

struct slot {
    char *chunk;        /* pinned, [CHUNK_BYTES] */
    cudaEvent_t copied; /* the last copy         */
    struct request over;
};

struct lane {
    struct transfer *first, *last;
    struct slot slot[SLOTS];
};

struct staged {
    struct device_comm base;
    struct staged *next;
    cudaStream_t copies;
    struct transfer *spare;
    int64_t *counts[2]; /* [size] of the window that goes over                            */
    int lanes;          /* 0: collectives; 1 + 2 tag: messages received; 2 + 2 tag: sent  */
    struct lane lane[]; /* none when alone */
};

typedef void over_fn(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                     struct request *r);
struct kind {
    enum span down, up;
    over_fn *over; /* start the host's transfer of window w */
};
extern const struct kind staged_kind_all_reduce, staged_kind_reduce_scatter, staged_kind_all_gather,
    staged_kind_all_to_all, staged_kind_broadcast_root, staged_kind_broadcast, staged_kind_send,
    staged_kind_recv;

extern struct staged *staged_all; /* of this process */
int staged_progress(void);        /* 1 if anything moved */
#endif
