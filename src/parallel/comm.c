#include "parallel/comm.h"

#include <stddef.h>

static void request_open(struct comm *c, struct request *r)
{
    BUG_IF(r->comm);
    r->comm = c;
}

void comm_all_reduce(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                     enum comm_op op, struct request *r)
{
    request_open(c, r);
    c->ops->all_reduce(c, q, buf, n, t, op, r);
}

void comm_reduce_scatter(struct comm *c, struct queue *q, dptr in, dptr out, const int64_t *counts,
                         enum dtype t, struct request *r)
{
    request_open(c, r);
    c->ops->reduce_scatter(c, q, in, out, counts, t, r);
}

void comm_all_gather(struct comm *c, struct queue *q, dptr in, dptr out, const int64_t *counts,
                     enum dtype t, struct request *r)
{
    request_open(c, r);
    c->ops->all_gather(c, q, in, out, counts, t, r);
}

void comm_all_to_all(struct comm *c, struct queue *q, dptr in, const int64_t *send, dptr out,
                     const int64_t *recv, enum dtype t, struct request *r)
{
    request_open(c, r);
    c->ops->all_to_all(c, q, in, send, out, recv, t, r);
}

void comm_broadcast(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int root,
                    struct request *r)
{
    request_open(c, r);
    c->ops->broadcast(c, q, buf, n, t, root, r);
}

void comm_send(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int to, int tag,
               struct request *r)
{
    request_open(c, r);
    c->ops->send(c, q, buf, n, t, to, tag, r);
}

void comm_recv(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int from,
               int tag, struct request *r)
{
    request_open(c, r);
    c->ops->recv(c, q, buf, n, t, from, tag, r);
}

void comm_group_begin(struct comm *c, struct queue *q)
{
    c->ops->group_begin(c, q);
}

void comm_group_end(struct comm *c, struct queue *q)
{
    c->ops->group_end(c, q);
}

void comm_wait(struct queue *q, struct request *r)
{
    if (r->comm)
        r->comm->ops->wait(r->comm, q, r, 0);
    r->comm = NULL;
}

void comm_wait_host(struct queue *q, struct request *r)
{
    if (r->comm)
        r->comm->ops->wait(r->comm, q, r, 1);
    r->comm = NULL;
}

int comm_test(struct queue *q, struct request *r)
{
    if (r->comm && !r->comm->ops->test(r->comm, q, r))
        return 0;
    r->comm = NULL;
    return 1;
}

void comm_sum_i64(struct comm *c, int64_t *x, int n)
{
    c->ops->host_reduce(c, x, n, I64, COMM_SUM);
}

void comm_max_i64(struct comm *c, int64_t *x, int n)
{
    c->ops->host_reduce(c, x, n, I64, COMM_MAX);
}

void comm_sum_f64(struct comm *c, double *x, int n)
{
    c->ops->host_reduce(c, x, n, F64, COMM_SUM);
}

void comm_bytes_from(struct comm *c, void *p, size_t bytes, int root)
{
    c->ops->host_broadcast(c, p, bytes, root);
}

void comm_bytes_all(struct comm *c, const void *mine, void *all, size_t bytes_each)
{
    c->ops->host_gather(c, mine, all, bytes_each);
}

void comm_barrier(struct comm *c)
{
    c->ops->host_barrier(c);
}
