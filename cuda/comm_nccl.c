#include "cuda/comm_nccl.h"

#include "base/arena.h"

/* NCCL's groups are the process's: transfers start at the outermost end. */
static int group_depth;
static struct flight *group_first;

/* ---- errors ---- */

void nccl_check(ncclResult_t rc, const char *call, const struct channel *on)
{
    if (rc != ncclSuccess && rc != ncclInProgress)
        die(E_PEER, "NCCL failed in '%s': %s: %s (%s); NCCL_DEBUG=WARN tells more", on->name, call,
            ncclGetErrorString(rc), ncclGetLastError(on->nccl));
}

ncclResult_t nccl_state(const struct channel *on)
{
    ncclResult_t state = ncclInternalError;
    ncclResult_t rc = ncclCommGetAsyncError(on->nccl, &state);

    return rc == ncclSuccess ? state : rc;
}

void nccl_finish_call(const struct channel *on)
{
    struct device_pause pause = { 0 };
    ncclResult_t state;

    while ((state = nccl_state(on)) == ncclInProgress)
        device_pause(&pause, 0);
    nccl_check(state, "a transfer", on);
}

/* ---- flights ---- */

static struct channel *channel_begin(struct comm *c, struct queue *q, int i)
{
    struct channel *on = &nccl_of(c)->channel[i];

    BUG_IF(i >= nccl_of(c)->channels);
    cuda_check(cudaEventRecord(on->start, q->stream), "cudaEventRecord");
    cuda_check(cudaStreamWaitEvent(on->stream, on->start, 0), "cudaStreamWaitEvent");
    return on;
}

static void flight_start(struct flight *f)
{
    nccl_finish_call(f->on);
    cuda_check(cudaEventRecord(f->end, f->on->stream), "cudaEventRecord");
}

static void channel_end(struct comm *c, struct channel *on, struct request *r)
{
    struct nccl *m = nccl_of(c);
    struct flight *f = m->spare;

    if (f) {
        m->spare = f->next;
    } else { /* more in flight than ever before */
        f = mem_take(sizeof *f);
        f->end = device_event_create();
    }
    f->on = on;
    r->state[0] = (int64_t)(intptr_t)f;
    if (group_depth == 0) {
        flight_start(f);
        return;
    }
    f->next = group_first;
    group_first = f;
}

static void group_begin(void)
{
    ncclGroupStart(); /* cannot fail */
    group_depth++;
}

static void group_end(const struct channel *on)
{
    struct flight *f;

    group_depth--;
    nccl_check(ncclGroupEnd(), "ncclGroupEnd", on);
    while (group_depth == 0 && (f = group_first)) {
        group_first = f->next;
        flight_start(f);
    }
}

static void no_transfer(struct request *r)
{
    r->state[0] = 0;
}

/* ---- transfers ---- */

static ncclDataType_t type_of(enum dtype t)
{
    switch (t) {
    case F32:
        return ncclFloat32;
    case F64:
        return ncclFloat64;
    case BF16:
        return ncclBfloat16;
    case F16:
        return ncclFloat16;
    case I32:
        return ncclInt32;
    case I64:
        return ncclInt64;
    default:
        die(E_BUG, "the NCCL backend cannot reduce %s", dtype_name(t));
    }
}

static size_t bytes_of(int64_t n, enum dtype t)
{
    return (size_t)n * dtype_size(t);
}

/* The one count of all pieces, -1 if they differ. */
static int64_t equal_count(const int64_t *counts, int n)
{
    for (int i = 1; i < n; i++)
        if (counts[i] != counts[0])
            return -1;
    return counts[0];
}

static void nccl_all_reduce(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                            enum comm_op op, struct request *r)
{
    ncclRedOp_t how = op == COMM_SUM ? ncclSum : ncclMax;
    struct channel *on;

    if (n == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 0);
    nccl_check(ncclAllReduce(buf.p, buf.p, (size_t)n, type_of(t), how, on->nccl, on->stream),
               "ncclAllReduce", on);
    channel_end(c, on, r);
}

static void reduce_pieces(struct comm *c, struct channel *on, dptr in, dptr out,
                          const int64_t *counts, enum dtype t)
{
    group_begin();
    for (int i = 0; i < c->size; i++) {
        if (counts[i] > 0)
            nccl_check(ncclReduce(in.p, i == c->rank ? out.p : NULL, (size_t)counts[i], type_of(t),
                                  ncclSum, i, on->nccl, on->stream),
                       "ncclReduce", on);
        in.p += bytes_of(counts[i], t);
    }
}

static void nccl_reduce_scatter(struct comm *c, struct queue *q, dptr in, dptr out,
                                const int64_t *counts, enum dtype t, struct request *r)
{
    int64_t each = equal_count(counts, c->size);
    struct channel *on;

    if (each == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 0);
    if (each > 0)
        nccl_check(
            ncclReduceScatter(in.p, out.p, (size_t)each, type_of(t), ncclSum, on->nccl, on->stream),
            "ncclReduceScatter", on);
    else
        reduce_pieces(c, on, in, out, counts, t);
    channel_end(c, on, r);
    if (each < 0)
        group_end(on);
}

static void broadcast_pieces(struct comm *c, struct channel *on, dptr in, dptr out,
                             const int64_t *counts, enum dtype t)
{
    group_begin();
    for (int i = 0; i < c->size; i++) {
        if (counts[i] > 0)
            nccl_check(ncclBroadcast(i == c->rank ? in.p : out.p, out.p, bytes_of(counts[i], t),
                                     ncclUint8, i, on->nccl, on->stream),
                       "ncclBroadcast", on);
        out.p += bytes_of(counts[i], t);
    }
}

static void nccl_all_gather(struct comm *c, struct queue *q, dptr in, dptr out,
                            const int64_t *counts, enum dtype t, struct request *r)
{
    int64_t each = equal_count(counts, c->size);
    struct channel *on;

    if (each == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 0);
    if (each > 0)
        nccl_check(ncclAllGather(in.p, out.p, bytes_of(each, t), ncclUint8, on->nccl, on->stream),
                   "ncclAllGather", on);
    else
        broadcast_pieces(c, on, in, out, counts, t);
    channel_end(c, on, r);
    if (each < 0)
        group_end(on);
}

static void nccl_all_to_all(struct comm *c, struct queue *q, dptr in, const int64_t *send, dptr out,
                            const int64_t *recv, enum dtype t, struct request *r)
{
    struct channel *on = channel_begin(c, q, 0);

    BUG_IF(send[c->rank] != recv[c->rank]);
    group_begin();
    for (int i = 0; i < c->size; i++) {
        size_t to = bytes_of(send[i], t), from = bytes_of(recv[i], t);
        if (i == c->rank)
            device_copy(out, in, (int64_t)to, on->stream);
        if (i != c->rank && to > 0)
            nccl_check(ncclSend(in.p, to, ncclUint8, i, on->nccl, on->stream), "ncclSend", on);
        if (i != c->rank && from > 0)
            nccl_check(ncclRecv(out.p, from, ncclUint8, i, on->nccl, on->stream), "ncclRecv", on);
        in.p += to;
        out.p += from;
    }
    channel_end(c, on, r);
    group_end(on);
}

static void nccl_broadcast(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                           int root, struct request *r)
{
    struct channel *on;

    if (n == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 0);
    nccl_check(ncclBroadcast(buf.p, buf.p, bytes_of(n, t), ncclUint8, root, on->nccl, on->stream),
               "ncclBroadcast", on);
    channel_end(c, on, r);
}

static void nccl_send(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int to,
                      int tag, struct request *r)
{
    struct channel *on;

    BUG_IF(to < 0 || to >= c->size || to == c->rank || tag < 0);
    if (n == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 1 + tag);
    nccl_check(ncclSend(buf.p, bytes_of(n, t), ncclUint8, to, on->nccl, on->stream), "ncclSend",
               on);
    channel_end(c, on, r);
}

static void nccl_recv(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int from,
                      int tag, struct request *r)
{
    struct channel *on;

    BUG_IF(from < 0 || from >= c->size || from == c->rank || tag < 0);
    if (n == 0) {
        no_transfer(r);
        return;
    }
    on = channel_begin(c, q, 1 + tag);
    nccl_check(ncclRecv(buf.p, bytes_of(n, t), ncclUint8, from, on->nccl, on->stream), "ncclRecv",
               on);
    channel_end(c, on, r);
}

static void nccl_group_begin(struct comm *c, struct queue *q)
{
    (void)c;
    (void)q;
    group_begin();
}

static void nccl_group_end(struct comm *c, struct queue *q)
{
    (void)q;
    group_end(&nccl_of(c)->channel[0]);
}

/* ---- waiting ---- */

static void flight_give(struct comm *c, struct flight *f)
{
    f->next = nccl_of(c)->spare;
    nccl_of(c)->spare = f;
}

/* 1 when the data is there. A peer that is gone shows as an error of the communicator. */
static int flight_over(const struct flight *f)
{
    int over = device_over(cudaEventQuery(f->end), "a transfer");

    nccl_check(nccl_state(f->on), "a transfer", f->on);
    return over;
}

static void nccl_wait(struct comm *c, struct queue *q, struct request *r, int host)
{
    struct flight *f = (struct flight *)(intptr_t)r->state[0];
    struct device_pause pause = { 0 };

    BUG_IF(group_depth > 0);
    if (!f)
        return;
    nccl_check(nccl_state(f->on), "a transfer", f->on);
    cuda_check(cudaStreamWaitEvent(q->stream, f->end, 0), "cudaStreamWaitEvent");
    while (host && !flight_over(f))
        device_pause(&pause, 0);
    flight_give(c, f);
}

static int nccl_test(struct comm *c, struct queue *q, struct request *r)
{
    struct flight *f = (struct flight *)(intptr_t)r->state[0];

    BUG_IF(group_depth > 0);
    if (!f)
        return 1;
    if (!flight_over(f))
        return 0;
    cuda_check(cudaStreamWaitEvent(q->stream, f->end, 0), "cudaStreamWaitEvent");
    flight_give(c, f);
    return 1;
}

const struct comm_ops nccl_ops = {
    .all_reduce = nccl_all_reduce,
    .reduce_scatter = nccl_reduce_scatter,
    .all_gather = nccl_all_gather,
    .all_to_all = nccl_all_to_all,
    .broadcast = nccl_broadcast,
    .send = nccl_send,
    .recv = nccl_recv,
    .group_begin = nccl_group_begin,
    .group_end = nccl_group_end,
    .wait = nccl_wait,
    .test = nccl_test,
    .host_reduce = device_comm_reduce,
    .host_broadcast = device_comm_broadcast,
    .host_gather = device_comm_gather,
    .host_barrier = device_comm_barrier,
};
