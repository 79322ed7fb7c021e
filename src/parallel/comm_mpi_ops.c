#include "parallel/comm_mpi_impl.h"

#include <string.h>

/* ---- transfers ---- */

static struct mpi_comm *impl(struct comm *c)
{
    return c->impl;
}

static void start(struct mpi_comm *m, struct op *o, struct request *r)
{
    r->state[0] = (int64_t)(intptr_t)o;
    comm_mpi_op_start(m, o);
}

static void no_transfer(struct request *r)
{
    r->state[0] = 0;
}

static int64_t sum_before(const int64_t *x, int n)
{
    int64_t s = 0;

    for (int i = 0; i < n; i++)
        s += x[i];
    return s;
}

static void copy_own(char *to, const char *from, int64_t bytes)
{
    if (to != from && bytes > 0)
        memmove(to, from, (size_t)bytes);
}

static void set_sum(struct op *o, enum dtype t, enum comm_op op)
{
    o->sum = comm_sum_of(t, op);
    o->element = (int64_t)dtype_size(t);
    if (!o->sum)
        die(E_BUG, "the MPI backend cannot reduce %s", dtype_name(t));
}

static void mpi_all_reduce(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                           enum comm_op op, struct request *r)
{
    struct mpi_comm *m = impl(c);
    struct op *o;

    (void)q;
    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, OP_ALL_REDUCE);
    set_sum(o, t, op);
    o->whole = buf.p;
    o->left = n * o->element;
    start(m, o, r);
}

static void mpi_reduce_scatter(struct comm *c, struct queue *q, dptr in, dptr out,
                               const int64_t *counts, enum dtype t, struct request *r)
{
    struct mpi_comm *m = impl(c);
    struct op *o;

    (void)q;
    if (c->size == 1) {
        copy_own(out.p, in.p, counts[0] * (int64_t)dtype_size(t));
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, OP_REDUCE_SCATTER);
    set_sum(o, t, COMM_SUM);
    for (int i = 0; i < c->size; i++)
        o->send[i] = counts[i] * o->element;
    o->in = in.p;
    o->out = out.p;
    start(m, o, r);
}

static void mpi_all_gather(struct comm *c, struct queue *q, dptr in, dptr out,
                           const int64_t *counts, enum dtype t, struct request *r)
{
    struct mpi_comm *m = impl(c);
    int64_t element = (int64_t)dtype_size(t);
    struct op *o;

    (void)q;
    copy_own(out.p + sum_before(counts, c->rank) * element, in.p, counts[c->rank] * element);
    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, OP_ALL_GATHER);
    for (int i = 0; i < c->size; i++)
        o->send[i] = counts[i] * element;
    o->whole = out.p;
    start(m, o, r);
}

static void mpi_all_to_all(struct comm *c, struct queue *q, dptr in, const int64_t *send, dptr out,
                           const int64_t *recv, enum dtype t, struct request *r)
{
    struct mpi_comm *m = impl(c);
    int64_t element = (int64_t)dtype_size(t);
    struct op *o;

    (void)q;
    BUG_IF(send[c->rank] != recv[c->rank]);
    copy_own(out.p + sum_before(recv, c->rank) * element,
             in.p + sum_before(send, c->rank) * element, send[c->rank] * element);
    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, OP_ALL_TO_ALL);
    for (int i = 0; i < c->size; i++) {
        o->send[i] = send[i] * element;
        o->recv[i] = recv[i] * element;
    }
    o->in = in.p;
    o->out = out.p;
    start(m, o, r);
}

static void mpi_broadcast(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                          int root, struct request *r)
{
    struct mpi_comm *m = impl(c);
    int64_t bytes = n * (int64_t)dtype_size(t);
    struct op *o;

    (void)q;
    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, bytes <= SMALL_BYTES ? OP_BROADCAST : OP_BROADCAST_LARGE);
    for (int i = 0; i < c->size; i++)
        o->send[i] = bytes * (i + 1) / c->size - bytes * i / c->size;
    o->whole = buf.p;
    o->root = root;
    start(m, o, r);
}

static void p2p(struct comm *c, dptr buf, int64_t n, enum dtype t, int peer, int tag, int sending,
                struct request *r)
{
    struct mpi_comm *m = impl(c);
    struct op *o;

    BUG_IF(peer < 0 || peer >= c->size || peer == c->rank || tag < 0 || tag > 15);
    if (n == 0) {
        no_transfer(r);
        return;
    }
    o = comm_mpi_op_take(m, OP_P2P);
    o->peer = peer;
    o->tag = tag;
    o->sending = sending;
    o->p2p.at = buf.p;
    o->p2p.left = n * (int64_t)dtype_size(t);
    start(m, o, r);
}

static void mpi_send(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int to,
                     int tag, struct request *r)
{
    (void)q;
    p2p(c, buf, n, t, to, tag, 1, r);
}

static void mpi_recv(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int from,
                     int tag, struct request *r)
{
    (void)q;
    p2p(c, buf, n, t, from, tag, 0, r);
}

/* Every transfer progresses with every other one: a group needs nothing. */
static void mpi_group(struct comm *c, struct queue *q)
{
    (void)c;
    (void)q;
}

/* ---- waiting ---- */

static void op_give(struct mpi_comm *m, struct op *o)
{
    o->next = m->spare;
    m->spare = o;
}

static void op_wait(struct mpi_comm *m, struct op *o)
{
    struct mpi_pause pause = { 0 };

    while (!o->done) {
        int moved = comm_mpi_progress(m->engine);
        if (!o->done)
            comm_mpi_pause(m->engine, &pause, moved);
    }
    op_give(m, o);
}

static void mpi_wait(struct comm *c, struct queue *q, struct request *r, int host)
{
    (void)q;
    (void)host;
    if (r->state[0])
        op_wait(impl(c), (struct op *)(intptr_t)r->state[0]);
}

static int mpi_test(struct comm *c, struct queue *q, struct request *r)
{
    struct op *o = (struct op *)(intptr_t)r->state[0];
    struct mpi_comm *m = impl(c);

    (void)q;
    if (!o)
        return 1;
    comm_mpi_progress(m->engine);
    if (!o->done)
        return 0;
    op_give(m, o);
    return 1;
}

/* ---- host memory ---- */

static void host_reduce(struct comm *c, void *x, int n, enum dtype t, enum comm_op op)
{
    struct request r = { 0 };

    comm_all_reduce(c, NULL, (dptr){ x }, n, t, op, &r);
    comm_wait_host(NULL, &r);
}

static void host_broadcast(struct comm *c, void *p, size_t bytes, int root)
{
    struct request r = { 0 };

    comm_broadcast(c, NULL, (dptr){ p }, (int64_t)bytes, U8, root, &r);
    comm_wait_host(NULL, &r);
}

static void host_gather(struct comm *c, const void *mine, void *all, size_t bytes_each)
{
    char *piece = (char *)all + (size_t)c->rank * bytes_each;
    struct mpi_comm *m = impl(c);
    struct request r = { .comm = c };
    struct op *o;

    copy_own(piece, mine, (int64_t)bytes_each);
    if (c->size == 1)
        return;
    o = comm_mpi_op_take(m, OP_ALL_GATHER);
    for (int i = 0; i < c->size; i++)
        o->send[i] = (int64_t)bytes_each;
    o->whole = all;
    start(m, o, &r);
    comm_wait_host(NULL, &r);
}

static void host_barrier(struct comm *c)
{
    int64_t nothing = 0;

    host_reduce(c, &nothing, 1, I64, COMM_SUM);
}

const struct comm_ops comm_mpi_ops = {
    .all_reduce = mpi_all_reduce,
    .reduce_scatter = mpi_reduce_scatter,
    .all_gather = mpi_all_gather,
    .all_to_all = mpi_all_to_all,
    .broadcast = mpi_broadcast,
    .send = mpi_send,
    .recv = mpi_recv,
    .group_begin = mpi_group,
    .group_end = mpi_group,
    .wait = mpi_wait,
    .test = mpi_test,
    .host_reduce = host_reduce,
    .host_broadcast = host_broadcast,
    .host_gather = host_gather,
    .host_barrier = host_barrier,
};
