#include "cuda/comm_staged.h"

#include "base/arena.h"

static struct staged *impl(struct comm *c)
{
    return (struct staged *)c->impl;
}

/* ---- start ---- */

static struct transfer *transfer_take(struct staged *s)
{
    struct transfer *x = s->spare;
    size_t n = (size_t)s->base.self.size;

    if (x) {
        s->spare = x->next;
        return x;
    }
    x = mem_take(sizeof *x + 2 * n * sizeof *x->send); /* more in flight than ever before */
    x->send = (int64_t *)(x + 1);
    x->recv = x->send + n;
    x->start = device_event_create();
    x->arrived = device_event_create();
    return x;
}

static struct transfer *transfer_of(struct comm *c, const struct kind *kind, dptr in, dptr out,
                                    enum dtype t)
{
    struct transfer *x = transfer_take(impl(c));

    *x = (struct transfer){ .kind = kind,
                            .type = t,
                            .in = in.p,
                            .out = out.p,
                            .send = x->send,
                            .recv = x->recv,
                            .start = x->start,
                            .arrived = x->arrived };
    return x;
}

/* chunk_bytes hold what a window takes of all pieces. */
static void set_pieces(struct transfer *x, const int64_t *send, const int64_t *recv, int pieces,
                       int64_t chunk_bytes)
{
    int64_t most = 0;

    for (int r = 0; r < pieces; r++) {
        x->send[r] = send[r];
        x->recv[r] = recv[r];
        most = max_i64(most, max_i64(send[r], recv[r]));
    }
    x->step = chunk_bytes / pieces / (int64_t)dtype_size(x->type);
    x->windows = ceil_div(most, x->step);
}

static void start(struct comm *c, struct queue *q, struct transfer *x, int lane, struct request *r)
{
    struct staged *s = impl(c);
    struct lane *l = &s->lane[lane];

    BUG_IF(lane >= s->lanes);
    cuda_check(cudaEventRecord(x->start, q->stream), "cudaEventRecord");
    x->next = NULL;
    if (l->first)
        l->last->next = x;
    else
        l->first = x;
    l->last = x;
    r->state[0] = (int64_t)(intptr_t)x;
    staged_progress();
}

static void no_transfer(struct request *r)
{
    r->state[0] = 0;
}

static void staged_all_reduce(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                              enum comm_op op, struct request *r)
{
    struct transfer *x;

    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    x = transfer_of(c, &staged_kind_all_reduce, buf, buf, t);
    x->op = op;
    set_pieces(x, &n, &n, 1, CHUNK_BYTES);
    start(c, q, x, 0, r);
}

static void staged_reduce_scatter(struct comm *c, struct queue *q, dptr in, dptr out,
                                  const int64_t *counts, enum dtype t, struct request *r)
{
    struct transfer *x;

    if (c->size == 1) {
        device_copy(out, in, counts[0] * (int64_t)dtype_size(t), q->stream);
        no_transfer(r);
        return;
    }
    x = transfer_of(c, &staged_kind_reduce_scatter, in, out, t);
    set_pieces(x, counts, counts, c->size, CHUNK_BYTES);
    start(c, q, x, 0, r);
}

static void staged_all_gather(struct comm *c, struct queue *q, dptr in, dptr out,
                              const int64_t *counts, enum dtype t, struct request *r)
{
    struct transfer *x;

    if (c->size == 1) {
        device_copy(out, in, counts[0] * (int64_t)dtype_size(t), q->stream);
        no_transfer(r);
        return;
    }
    x = transfer_of(c, &staged_kind_all_gather, in, out, t);
    set_pieces(x, counts, counts, c->size, CHUNK_BYTES);
    start(c, q, x, 0, r);
}

static void staged_all_to_all(struct comm *c, struct queue *q, dptr in, const int64_t *send,
                              dptr out, const int64_t *recv, enum dtype t, struct request *r)
{
    struct transfer *x;

    BUG_IF(send[c->rank] != recv[c->rank]);
    if (c->size == 1) {
        device_copy(out, in, send[0] * (int64_t)dtype_size(t), q->stream);
        no_transfer(r);
        return;
    }
    x = transfer_of(c, &staged_kind_all_to_all, in, out, t);
    set_pieces(x, send, recv, c->size, CHUNK_BYTES / 2);
    start(c, q, x, 0, r);
}

static void staged_broadcast(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                             int root, struct request *r)
{
    struct transfer *x;

    if (c->size == 1) {
        no_transfer(r);
        return;
    }
    x = transfer_of(c, c->rank == root ? &staged_kind_broadcast_root : &staged_kind_broadcast, buf,
                    buf, t);
    x->peer = root;
    set_pieces(x, &n, &n, 1, CHUNK_BYTES);
    start(c, q, x, 0, r);
}

static void message(struct comm *c, struct queue *q, const struct kind *kind, dptr buf, int64_t n,
                    enum dtype t, int peer, int tag, struct request *r)
{
    struct transfer *x;

    BUG_IF(peer < 0 || peer >= c->size || peer == c->rank || tag < 0);
    if (n == 0) {
        no_transfer(r);
        return;
    }
    x = transfer_of(c, kind, buf, buf, t);
    x->peer = peer;
    x->tag = tag;
    set_pieces(x, &n, &n, 1, CHUNK_BYTES);
    start(c, q, x, 1 + 2 * tag + (kind == &staged_kind_send), r);
}

static void staged_send(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t, int to,
                        int tag, struct request *r)
{
    message(c, q, &staged_kind_send, buf, n, t, to, tag, r);
}

static void staged_recv(struct comm *c, struct queue *q, dptr buf, int64_t n, enum dtype t,
                        int from, int tag, struct request *r)
{
    message(c, q, &staged_kind_recv, buf, n, t, from, tag, r);
}

/* Every transfer progresses with every other one: a group needs nothing. */
static void staged_group(struct comm *c, struct queue *q)
{
    (void)c;
    (void)q;
}

/* ---- waiting ---- */

static void transfer_give(struct comm *c, struct transfer *x)
{
    x->next = impl(c)->spare;
    impl(c)->spare = x;
}

static void staged_wait(struct comm *c, struct queue *q, struct request *r, int host)
{
    struct transfer *x = (struct transfer *)(intptr_t)r->state[0];
    struct device_pause pause = { 0 };

    if (x) {
        while (!x->done)
            device_pause(&pause, staged_progress());
        cuda_check(cudaStreamWaitEvent(q->stream, x->arrived, 0), "cudaStreamWaitEvent");
        if (host)
            cuda_check(cudaEventSynchronize(x->arrived), "a copy of a transfer");
        transfer_give(c, x);
    } else if (host) {
        cuda_check(cudaStreamSynchronize(q->stream), "cudaStreamSynchronize");
    }
}

static int staged_test(struct comm *c, struct queue *q, struct request *r)
{
    struct transfer *x = (struct transfer *)(intptr_t)r->state[0];

    if (!x)
        return device_over(cudaStreamQuery(q->stream), "queued work");
    staged_progress();
    if (!x->done || !device_over(cudaEventQuery(x->arrived), "a copy of a transfer"))
        return 0;
    cuda_check(cudaStreamWaitEvent(q->stream, x->arrived, 0), "cudaStreamWaitEvent");
    transfer_give(c, x);
    return 1;
}

static const struct comm_ops staged_ops = {
    .all_reduce = staged_all_reduce,
    .reduce_scatter = staged_reduce_scatter,
    .all_gather = staged_all_gather,
    .all_to_all = staged_all_to_all,
    .broadcast = staged_broadcast,
    .send = staged_send,
    .recv = staged_recv,
    .group_begin = staged_group,
    .group_end = staged_group,
    .wait = staged_wait,
    .test = staged_test,
    .host_reduce = device_comm_reduce,
    .host_broadcast = device_comm_broadcast,
    .host_gather = device_comm_gather,
    .host_barrier = device_comm_barrier,
};

/* ---- create, free ---- */

/* How many of the host's transfers are under way at once depends on time; a step must not ask for
 * memory, so all that can be are made once here. */
static void warm_host(struct staged *s)
{
    struct request agreeing = { 0 };
    int64_t zero = 0;

    for (int i = 0; i < SLOTS * s->lanes; i++) {
        struct slot *t = &s->lane[i / SLOTS].slot[i % SLOTS];
        *(int32_t *)t->chunk = 0;
        comm_all_reduce(s->base.host, NULL, (dptr){ t->chunk }, 1, I32, COMM_MAX, &t->over);
    }
    comm_all_reduce(s->base.host, NULL, (dptr){ (char *)&zero }, 1, I64, COMM_MAX, &agreeing);
    for (int i = 0; i < SLOTS * s->lanes; i++)
        comm_wait(NULL, &s->lane[i / SLOTS].slot[i % SLOTS].over);
    comm_wait(NULL, &agreeing);
}

static int64_t take_chunks(struct staged *s, int lanes)
{
    for (s->lanes = 0; s->lanes < lanes; s->lanes++)
        for (int i = 0; i < SLOTS; i++) {
            struct slot *t = &s->lane[s->lanes].slot[i];
            t->copied = device_event_create();
            if (cudaMallocHost((void **)&t->chunk, CHUNK_BYTES) != cudaSuccess)
                return 1;
        }
    return 0;
}

enum status comm_staged_create(struct comm **c, struct comm *host, int tags, struct err *e)
{
    int lanes = host->size > 1 ? 1 + 2 * tags : 0;
    struct staged *s = mem_take(sizeof *s + (size_t)lanes * sizeof *s->lane);
    size_t n = (size_t)host->size;
    int64_t lacks;

    device_comm_init(&s->base, host, &staged_ops);
    *c = &s->base.self;
    s->next = staged_all;
    staged_all = s;
    s->counts[0] = mem_take(2 * n * sizeof *s->counts[0]);
    s->counts[1] = s->counts[0] + n;
    cuda_check(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking), "cudaStreamCreate");
    lacks = take_chunks(s, lanes);
    comm_max_i64(host, &lacks, 1);
    if (lacks)
        return err_set(e, E_RESOURCE,
                       "no pinned memory for the transfers of '%s' through the host, %d MiB a rank",
                       host->name, lanes * SLOTS * (CHUNK_BYTES >> 20));
    if (lanes > 0)
        warm_host(s);
    return OK;
}

static void lane_free(struct lane *l)
{
    BUG_IF(l->first);
    for (int i = 0; i < SLOTS; i++) {
        if (l->slot[i].chunk)
            cuda_check(cudaFreeHost(l->slot[i].chunk), "cudaFreeHost");
        cuda_check(cudaEventDestroy(l->slot[i].copied), "cudaEventDestroy");
    }
}

void comm_staged_free(struct comm *c)
{
    struct staged *s = impl(c), **link;
    struct transfer *x;

    cuda_check(cudaStreamSynchronize(s->copies), "cudaStreamSynchronize");
    for (int i = 0; i < s->lanes; i++)
        lane_free(&s->lane[i]);
    while ((x = s->spare)) {
        s->spare = x->next;
        cuda_check(cudaEventDestroy(x->start), "cudaEventDestroy");
        cuda_check(cudaEventDestroy(x->arrived), "cudaEventDestroy");
        mem_give(x);
    }
    cuda_check(cudaStreamDestroy(s->copies), "cudaStreamDestroy");
    for (link = &staged_all; *link != s; link = &(*link)->next)
        ;
    *link = s->next;
    mem_give(s->counts[0]);
    mem_give(s);
}
