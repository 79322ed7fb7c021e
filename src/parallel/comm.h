/* The communication seam. Every transfer is start + wait: start is ordered after work queued
 * earlier on q, comm_wait orders later work behind it and need not block the host. Buffers are the
 * compute backend's memory and belong to the caller until the wait. Counts are elements, any size
 * (split inside above 2^31 bytes). Sums of the MPI backend run in rank order 0..n-1, in the element
 * type. */
#ifndef PARALLEL_COMM_H
#define PARALLEL_COMM_H
#include "base/dtype.h"
#include "base/err.h"

enum comm_op { COMM_SUM, COMM_MAX };

struct comm;
struct request {       /* owned by the caller, zeroed before first use, one transfer at a time */
    struct comm *comm; /* NULL: nothing pending */
    int64_t state[24]; /* backend's own         */
};

struct comm {
    int rank, size;
    const char *name; /* "tp", "dp", ... */
    const struct comm_ops *ops;
    void *impl;
};

void comm_all_reduce(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                     enum comm_op op, struct request *r) COLL(c);
/* in: the pieces of all ranks one after the other (counts[size] elements each); out: my piece
 * summed. out may be my own piece inside in; otherwise `in` is only read. Counts may be 0. */
void comm_reduce_scatter(struct comm *c, struct queue *q, dptr in, dptr out, const int64_t *counts,
                         enum dtype t, struct request *r) COLL(c);
/* in: my counts[rank] elements; out: all pieces; in may be my own piece inside out. */
void comm_all_gather(struct comm *c, struct queue *q, dptr in, dptr out, const int64_t *counts,
                     enum dtype t, struct request *r) COLL(c);
/* Piece i of `in` (send[i] elements, packed) goes to rank i; piece i of out (recv[i]) comes from
 * rank i. */
void comm_all_to_all(struct comm *c, struct queue *q, dptr in, const int64_t *send, dptr out,
                     const int64_t *recv, enum dtype t, struct request *r) COLL(c);
void comm_broadcast(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int root,
                    struct request *r) COLL(c);
/* Point to point: messages of one (from, to, tag) arrive in the order sent. tag: 0..15. Outside of
 * a group the program may not rely on more than this: a rank's transfers of one tag are made in the
 * order of their start, a send completes only with its receive, and tags do not hold each other up.
 */
void comm_send(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int to, int tag,
               struct request *r) LOCAL;
void comm_recv(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int from,
               int tag, struct request *r) LOCAL;
/* Transfers up to the end progress together; none of them is waited for before it. */
void comm_group_begin(struct comm *c, struct queue *q) LOCAL;
void comm_group_end(struct comm *c, struct queue *q) LOCAL;
void comm_wait(struct queue *q, struct request *r) LOCAL; /* nothing pending is fine */
/* Returns when the data is there for the host. */
void comm_wait_host(struct queue *q, struct request *r) LOCAL;
/* Asks only: 1 when comm_wait_host would have returned, and then nothing is pending. */
int comm_test(struct queue *q, struct request *r) LOCAL;

/* Host memory, at once: for set-up and control, never per micro-batch. */
void comm_sum_i64(struct comm *c, int64_t *x, int n) COLL(c);
void comm_max_i64(struct comm *c, int64_t *x, int n) COLL(c);
void comm_sum_f64(struct comm *c, double *x, int n) COLL(c);
void comm_bytes_from(struct comm *c, void *p, size_t bytes, int root) COLL(c); /* broadcast */
/* all [size][bytes_each] */
void comm_bytes_all(struct comm *c, const void *mine, void *all, size_t bytes_each) COLL(c);
void comm_barrier(struct comm *c) COLL(c);

struct comm_ops {
    void (*all_reduce)(struct comm *, struct queue *, dptr, int64_t, enum dtype, enum comm_op,
                       struct request *);
    void (*reduce_scatter)(struct comm *, struct queue *, dptr, dptr, const int64_t *, enum dtype,
                           struct request *);
    void (*all_gather)(struct comm *, struct queue *, dptr, dptr, const int64_t *, enum dtype,
                       struct request *);
    void (*all_to_all)(struct comm *, struct queue *, dptr, const int64_t *, dptr, const int64_t *,
                       enum dtype, struct request *);
    void (*broadcast)(struct comm *, struct queue *, dptr, int64_t, enum dtype, int,
                      struct request *);
    void (*send)(struct comm *, struct queue *, dptr, int64_t, enum dtype, int, int,
                 struct request *);
    void (*recv)(struct comm *, struct queue *, dptr, int64_t, enum dtype, int, int,
                 struct request *);
    void (*group_begin)(struct comm *, struct queue *);
    void (*group_end)(struct comm *, struct queue *);
    void (*wait)(struct comm *, struct queue *, struct request *, int host);
    int (*test)(struct comm *, struct queue *, struct request *);
    /* Host memory; a backend without host transfers passes these on to the host communicator that
     * it was given. */
    void (*host_reduce)(struct comm *, void *x, int n, enum dtype, enum comm_op);
    void (*host_broadcast)(struct comm *, void *p, size_t bytes, int root);
    void (*host_gather)(struct comm *, const void *mine, void *all, size_t bytes_each);
    void (*host_barrier)(struct comm *);
};

/* ---- memory of a GPU: cuda/ ----
 * Each makes a communicator of the ranks of `host` (a communicator for host memory, which stays in
 * use and is not freed with it). tags: point-to-point tags in use are 0..tags-1. */
/* Through pinned host memory and `host`'s own transfers. Alone in `host`: copies only. The same
 * status on all ranks. */
enum status comm_staged_create(struct comm **c, struct comm *host, int tags, struct err *e)
    COLL(host);
void comm_staged_free(struct comm *c) LOCAL;
/* NCCL; no two ranks may share a GPU. deterministic: sums repeat from run to run. The same status
 * on all ranks. */
enum status comm_nccl_create(struct comm **c, struct comm *host, int tags, int deterministic,
                             struct err *e) COLL(host);
void comm_nccl_free(struct comm *c) COLL(c);
const char *comm_nccl_version(void) LOCAL; /* "NCCL 2.28.9" */
#endif
