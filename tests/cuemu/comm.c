/* Communication of device memory against the host's on the same values.
 * usage: comm staged|nccl [planted MISTAKE]
 * Sums over NCCL may run in another order: at two ranks nothing may differ, at more 1e-6 of the
 * sum of magnitudes (2-byte floats: their own rounding). All else is compared bit by bit. */
#include "parallel/comm.h"
#include "base/arena.h"
#include "base/rng.h"
#include "cuda/queue.h"
#include "schedule/schedule.h"

#include "../parallel/ranks.h"

#include <math.h>

static struct comm *world;
static int over_nccl;
static struct queue queue, *q = &queue;

/* A chunk of the staged backend is 4 MiB. */
static const int64_t sizes[] = { 0, 1, 7, 1000, 65537, 1100003 };
static const enum dtype types[] = { F32, BF16, F16, F64, I32, I64 };

static struct comm *create(struct comm *host, int tags)
{
    struct err e = { "" };
    struct comm *c = NULL;
    enum status st = over_nccl && host->size > 1 ? comm_nccl_create(&c, host, tags, 1, &e)
                                                 : comm_staged_create(&c, host, tags, &e);

    if (st != OK)
        die(st, "%s", e.text);
    return c;
}

static void destroy(struct comm *c)
{
    if (over_nccl && c->size > 1)
        comm_nccl_free(c);
    else
        comm_staged_free(c);
}

/* ---- memory ---- */

static dptr device_take(size_t bytes)
{
    dptr d;

    cuda_check(cudaMalloc((void **)&d.p, bytes + 1), "cudaMalloc");
    return d;
}

static void device_give(dptr d)
{
    cuda_check(cudaFree(d.p), "cudaFree");
}

static void upload(dptr to, const void *from, size_t bytes)
{
    cuda_check(cudaMemcpyAsync(to.p, from, bytes, cudaMemcpyHostToDevice, q->stream), "upload");
}

static void download(void *to, dptr from, size_t bytes)
{
    cuda_check(cudaMemcpyAsync(to, from.p, bytes, cudaMemcpyDeviceToHost, q->stream), "download");
    cuda_check(cudaStreamSynchronize(q->stream), "download");
}

/* Elements of any type, between -2 and 2 or as integers; their sums are not exact. */
static void fill(void *x, enum dtype t, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = ((uint64_t)i + seed * 0x2545f4914f6cdd1du + 1) * 0x9e3779b97f4a7c15u;
        double v;
        h ^= h >> 31;
        h *= 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
        v = (double)(int64_t)h / (double)((int64_t)1 << 62);
        if (t == I32)
            ((int32_t *)x)[i] = (int32_t)(h >> 36);
        else if (t == I64)
            ((int64_t *)x)[i] = (int64_t)(h >> 8);
        else if (t == F32)
            ((float *)x)[i] = (float)v;
        else if (dtype_is_float(t))
            dtype_convert((char *)x + (size_t)i * dtype_size(t), t, &v, F64, 1);
        else
            ((uint8_t *)x)[i] = (uint8_t)h;
    }
}

/* rounding: sums in another order are welcome */
static int same(const void *x, const void *y, enum dtype t, int64_t n, int rounding)
{
    const char *a = x, *b = y;
    size_t e = dtype_size(t);
    double p, s, most = t == BF16 ? 3e-2 : t == F16 ? 4e-3 : 1e-6;

    if (!rounding || world->size == 2 || !over_nccl || !dtype_is_float(t))
        return memcmp(x, y, (size_t)n * e) == 0;
    for (int64_t i = 0; i < n; i++) {
        dtype_convert(&p, F64, a + (size_t)i * e, t, 1);
        dtype_convert(&s, F64, b + (size_t)i * e, t, 1);
        if (!(fabs(p - s) <= most * world->size))
            return 0;
    }
    return 1;
}

/* in and out of one transfer: on the host, and on the device with the same values */
struct scene {
    char *in, *out, *got;
    dptr din, dout;
    size_t in_bytes, out_bytes;
};

static void scene_open(struct scene *s, enum dtype t, int64_t in, int64_t out, int rank)
{
    s->in_bytes = (size_t)in * dtype_size(t);
    s->out_bytes = (size_t)out * dtype_size(t);
    s->in = mem_take(s->in_bytes + 1);
    s->out = mem_take(s->out_bytes + 1);
    s->got = mem_take(s->out_bytes + 1);
    s->din = device_take(s->in_bytes);
    s->dout = device_take(s->out_bytes);
    fill(s->in, t, in, 7 + (uint64_t)rank);
    fill(s->out, t, out, 100 + (uint64_t)rank);
    upload(s->din, s->in, s->in_bytes);
    upload(s->dout, s->out, s->out_bytes);
}

static int scene_close(struct scene *s, enum dtype t, int rounding)
{
    int ok;

    download(s->got, s->dout, s->out_bytes);
    ok = same(s->got, s->out, t, (int64_t)(s->out_bytes / dtype_size(t)), rounding);
    download(s->got, s->din, min_i64((int64_t)s->in_bytes, (int64_t)s->out_bytes));
    ok &= memcmp(s->got, s->in, (size_t)min_i64((int64_t)s->in_bytes, (int64_t)s->out_bytes)) == 0;
    device_give(s->din);
    device_give(s->dout);
    mem_give(s->in);
    mem_give(s->out);
    mem_give(s->got);
    return ok;
}

static dptr at(void *p)
{
    return (dptr){ p };
}

/* ---- each transfer alone ---- */

static int64_t total(const int64_t *counts, int n)
{
    int64_t s = 0;

    for (int i = 0; i < n; i++)
        s += counts[i];
    return s;
}

enum { SHAPES = 4 };
static void set_counts(int64_t *counts, int size, int64_t n, int shape)
{
    for (int r = 0; r < size; r++)
        counts[r] = shape == 0   ? n / size + 1             /* equal            */
                    : shape == 1 ? n / size + (r < 2)       /* nearly           */
                    : shape == 2 ? (r % 2 ? 0 : n / size)   /* every second: 0  */
                                 : (r == size - 1 ? n : 0); /* all on the last */
}

static int all_reduce_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t,
                            enum comm_op op)
{
    struct request r = { 0 };
    struct scene s;

    scene_open(&s, t, n, n, c->rank);
    comm_all_reduce(host, NULL, at(s.out), n, t, op, &r);
    comm_wait(NULL, &r);
    comm_all_reduce(c, q, s.dout, n, t, op, &r);
    comm_wait(q, &r);
    return scene_close(&s, t, 1);
}

static int reduce_scatter_holds(struct comm *c, struct comm *host, int64_t n, int shape,
                                enum dtype t, int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts), first, all;
    struct request r = { 0 };
    struct scene s;
    int ok;

    set_counts(counts, c->size, n, shape);
    first = total(counts, c->rank) * (int64_t)dtype_size(t);
    all = total(counts, c->size);
    scene_open(&s, t, all, in_place ? all : counts[c->rank], c->rank);
    if (in_place) {
        comm_reduce_scatter(host, NULL, at(s.out), at(s.out + first), counts, t, &r);
        comm_wait(NULL, &r);
        comm_reduce_scatter(c, q, s.dout, dptr_at(s.dout, first), counts, t, &r);
    } else {
        comm_reduce_scatter(host, NULL, at(s.in), at(s.out), counts, t, &r);
        comm_wait(NULL, &r);
        comm_reduce_scatter(c, q, s.din, s.dout, counts, t, &r);
    }
    counts[0] = -1; /* only read by the start */
    comm_wait(q, &r);
    ok = scene_close(&s, t, 1);
    mem_give(counts);
    return ok;
}

static int all_gather_holds(struct comm *c, struct comm *host, int64_t n, int shape, enum dtype t,
                            int in_place)
{
    int64_t *counts = mem_take((size_t)c->size * sizeof *counts), first, all;
    struct request r = { 0 };
    struct scene s;
    int ok;

    set_counts(counts, c->size, n, shape);
    first = total(counts, c->rank) * (int64_t)dtype_size(t);
    all = total(counts, c->size);
    scene_open(&s, t, counts[c->rank], all, c->rank);
    comm_all_gather(host, NULL, in_place ? at(s.out + first) : at(s.in), at(s.out), counts, t, &r);
    comm_wait(NULL, &r);
    comm_all_gather(c, q, in_place ? dptr_at(s.dout, first) : s.din, s.dout, counts, t, &r);
    counts[0] = -1;
    comm_wait_host(q, &r);
    ok = scene_close(&s, t, 0);
    mem_give(counts);
    return ok;
}

/* From a to b: (a + 2 b) % 3 * n elements. */
static int all_to_all_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t)
{
    int64_t *send = mem_take(2 * (size_t)c->size * sizeof *send), *recv = send + c->size;
    struct request r = { 0 };
    struct scene s;
    int ok;

    for (int k = 0; k < c->size; k++) {
        send[k] = (c->rank + 2 * k) % 3 * n;
        recv[k] = (k + 2 * c->rank) % 3 * n;
    }
    scene_open(&s, t, total(send, c->size), total(recv, c->size), c->rank);
    comm_all_to_all(host, NULL, at(s.in), send, at(s.out), recv, t, &r);
    comm_wait(NULL, &r);
    comm_all_to_all(c, q, s.din, send, s.dout, recv, t, &r);
    comm_wait(q, &r);
    ok = scene_close(&s, t, 0);
    mem_give(send);
    return ok;
}

static int broadcast_holds(struct comm *c, struct comm *host, int64_t n, enum dtype t, int root)
{
    struct request r = { 0 };
    struct scene s;

    scene_open(&s, t, n, n, c->rank);
    comm_broadcast(host, NULL, at(s.out), n, t, root, &r);
    comm_wait(NULL, &r);
    comm_broadcast(c, q, s.dout, n, t, root, &r);
    comm_wait(q, &r);
    return scene_close(&s, t, 0);
}

static void test_type(struct comm *c, struct comm *host, enum dtype t)
{
    int sum = 1, max = 1, scatter = 1, gather = 1, exchange = 1, cast = 1;

    for (int i = 0; i < COUNT_OF(sizes); i++) {
        int64_t n = sizes[i];
        int large = n > 100000;
        if (large && t != F32 && t != BF16)
            continue;
        sum &= all_reduce_holds(c, host, n, t, COMM_SUM);
        max &= all_reduce_holds(c, host, n, t, COMM_MAX);
        for (int shape = large; shape < SHAPES; shape += 1 + large) {
            scatter &= reduce_scatter_holds(c, host, n, shape, t, (i + shape) % 2);
            gather &= all_gather_holds(c, host, n, shape, t, (i + shape + 1) % 2);
        }
        cast &= broadcast_holds(c, host, n, t, i % c->size);
        if (!large || t == F32)
            exchange &= all_to_all_holds(c, host, n, t);
    }
    ranks_ok(sum, "all_reduce sum %s", dtype_name(t));
    ranks_ok(max, "all_reduce max %s", dtype_name(t));
    ranks_ok(scatter, "reduce_scatter %s, counts also 0", dtype_name(t));
    ranks_ok(gather, "all_gather %s, counts also 0", dtype_name(t));
    ranks_ok(exchange, "all_to_all %s, counts also 0", dtype_name(t));
    ranks_ok(cast, "broadcast %s", dtype_name(t));
}

/* ---- messages ---- */

static void test_messages(struct comm *c)
{
    enum { LONG = (9 << 20) + 3, SHORT = 1001, ALL = 2 * LONG + SHORT };
    int to = (c->rank + 1) % c->size, from = (c->rank + c->size - 1) % c->size, ok;
    uint8_t *x = mem_take(ALL), *y = mem_take(ALL), *z = mem_take(ALL);
    dptr dx = device_take(ALL), dy = device_take(ALL);
    struct request r[8] = { { 0 } };

    for (int i = 0; i < ALL; i++) {
        x[i] = (uint8_t)(i / 4093 + c->rank);
        z[i] = (uint8_t)(i / 4093 + from);
    }
    upload(dx, x, ALL);
    comm_group_begin(c, q);
    comm_send(c, q, dx, LONG, U8, to, 1, &r[0]);
    comm_send(c, q, dptr_at(dx, LONG), LONG, U8, to, 1, &r[1]);
    comm_send(c, q, dptr_at(dx, 2 * LONG), SHORT - 1, U8, to, 1, &r[2]);
    comm_send(c, q, dptr_at(dx, ALL - 1), 1, U8, to, 0, &r[3]);
    comm_recv(c, q, dptr_at(dy, ALL - 1), 1, U8, from, 0, &r[4]);
    comm_recv(c, q, dy, LONG, U8, from, 1, &r[5]);
    comm_recv(c, q, dptr_at(dy, LONG), LONG, U8, from, 1, &r[6]);
    comm_recv(c, q, dptr_at(dy, 2 * LONG), SHORT - 1, U8, from, 1, &r[7]);
    comm_group_end(c, q);
    for (int i = 0; i < 8; i++)
        comm_wait(q, &r[(i + c->rank) % 8]);
    comm_send(c, q, dx, 0, F32, to, 0, &r[0]);
    comm_recv(c, q, dy, 0, F32, from, 0, &r[1]);
    comm_wait(q, &r[1]);
    comm_wait(q, &r[0]);
    comm_wait(q, &r[0]);
    download(y, dy, ALL);
    ok = memcmp(y, z, ALL) == 0;
    ranks_ok(ok, "messages of a tag arrive in the order sent, those of two tags together");
    device_give(dx);
    device_give(dy);
    mem_give(x);
    mem_give(y);
    mem_give(z);
}

enum { FLIGHTS = 30, FLIGHT_N = 20011 };

/* Collectives of three communicators and a ring of messages, all started before any is waited for;
 * every rank waits in an order of its own. */
static int flights_hold(struct comm **on, struct comm **host, int round)
{
    size_t bytes = FLIGHT_N * sizeof(float);
    struct request r[FLIGHTS] = { { 0 } }, s = { 0 }, t = { 0 }, h = { 0 };
    struct comm *c = on[0];
    int to = (c->rank + 1) % c->size, from = (c->rank + c->size - 1) % c->size, ok = 1;
    float *x = mem_take(bytes), *y = mem_take(bytes);
    dptr d = device_take((FLIGHTS + 2) * bytes), got = dptr_at(d, FLIGHTS * (int64_t)bytes),
         own = dptr_at(d, (FLIGHTS + 1) * (int64_t)bytes);

    fill(x, F32, FLIGHT_N, 1000 + (uint64_t)c->rank);
    upload(own, x, bytes);
    for (int k = 0; k < FLIGHTS; k++) {
        fill(x, F32, FLIGHT_N, (uint64_t)(k + 100 * on[k % 3]->rank));
        upload(dptr_at(d, k * (int64_t)bytes), x, bytes);
        if (k == 6 && c->rank == 0) /* a ring needs one that sends first */
            comm_send(c, q, own, FLIGHT_N, F32, to, 1, &s);
        if (k == 7)
            comm_recv(c, q, got, FLIGHT_N, F32, from, 1, &t);
        comm_all_reduce(on[k % 3], q, dptr_at(d, k * (int64_t)bytes), FLIGHT_N, F32, COMM_SUM,
                        &r[k]);
    }
    if (c->rank != 0)
        comm_send(c, q, own, FLIGHT_N, F32, to, 1, &s);
    for (int k = 0; k < FLIGHTS; k++) {
        int w = (int)rng_permute((uint64_t)round, (uint64_t)c->rank, FLIGHTS, (uint64_t)k);
        if (k == FLIGHTS / 2)
            comm_wait(q, c->rank % 2 ? &t : &s);
        while (w % 5 == 0 && !comm_test(q, &r[w]))
            ;
        comm_wait(q, &r[w]);
    }
    comm_wait(q, &s);
    comm_wait(q, &t);
    for (int k = 0; k < FLIGHTS; k++) {
        fill(x, F32, FLIGHT_N, (uint64_t)(k + 100 * on[k % 3]->rank));
        comm_all_reduce(host[k % 3], NULL, at(x), FLIGHT_N, F32, COMM_SUM, &h);
        comm_wait(NULL, &h);
        download(y, dptr_at(d, k * (int64_t)bytes), bytes);
        ok &= same(y, x, F32, FLIGHT_N, 1);
    }
    fill(x, F32, FLIGHT_N, 1000 + (uint64_t)from);
    download(y, got, bytes);
    ok &= memcmp(x, y, bytes) == 0;
    device_give(d);
    mem_give(x);
    mem_give(y);
    return ok;
}

static void test_flights(void)
{
    struct comm *host[3] = { world, comm_mpi_split(world, world->rank / 2, world->rank, "row"),
                             comm_mpi_split(world, world->rank % 2, world->rank, "column") };
    struct comm *on[3];
    int64_t before;
    int ok, requests[2];

    for (int i = 0; i < 3; i++)
        on[i] = create(host[i], i == 0 ? 2 : 0);
    ok = flights_hold(on, host, 0);
    for (int round = 0; round < 2; round++) {
        before = mem_requests();
        ok &= flights_hold(on, host, round + 1);
        requests[round] = (int)(mem_requests() - before);
    }
    ranks_ok(ok, "%d transfers in flight, waited for in any order", FLIGHTS + 2);
    ranks_ok(requests[0] == 2 && requests[1] == 2, "transfers ask for no memory");
    for (int i = 2; i >= 0; i--)
        destroy(on[i]);
    comm_mpi_free(host[2]);
    comm_mpi_free(host[1]);
}

/* ---- a pipeline: what goes in comes out at the other end, forward and backward ---- */

enum { STAGE_N = 3001, MBS = 8, SLOTS_MAX = 64 };

struct buffer {
    dptr in, out;
    struct request coming, going;
};

struct pipe {
    struct comm *pp, *tp, *grad;
    struct schedule s;
    struct buffer slot[SLOTS_MAX], gradient[SLOTS_MAX];
    dptr first, last, found, scratch, sums; /* [MBS][STAGE_N] values sent in, found at the ends */
    struct request reducing;
};

static void copy(dptr to, dptr from)
{
    cuda_check(
        cudaMemcpyAsync(to.p, from.p, STAGE_N * sizeof(float), cudaMemcpyDeviceToDevice, q->stream),
        "copy");
}

static dptr row(dptr d, int m)
{
    return dptr_at(d, m * (int64_t)(STAGE_N * sizeof(float)));
}

static void pipe_forward(struct pipe *p, const struct action *a)
{
    struct buffer *b = &p->slot[a->slot];
    struct request r = { 0 };

    comm_wait(q, &b->coming);
    comm_wait(q, &b->going);
    copy(b->out, a->first ? row(p->first, a->mb) : b->in);
    comm_all_reduce(p->tp, q, p->scratch, STAGE_N, F32, COMM_MAX, &r);
    comm_wait(q, &r);
    if (!a->last)
        return;
    copy(row(p->found, a->mb), b->out);
    if (!p->s.forward_only) {
        comm_wait(q, &p->gradient[a->grad].going);
        copy(p->gradient[a->grad].in, row(p->last, a->mb));
    }
}

static void pipe_backward(struct pipe *p, const struct action *a)
{
    struct buffer *g = &p->gradient[a->grad];
    struct request r = { 0 };

    comm_wait(q, &g->coming);
    comm_all_reduce(p->tp, q, p->scratch, STAGE_N, F32, COMM_MAX, &r);
    comm_wait(q, &r);
    if (a->first)
        copy(row(p->found, a->mb), g->in);
}

static void pipe_act(struct pipe *p, const struct action *a)
{
    struct buffer *b = a->slot >= 0 ? &p->slot[a->slot] : NULL,
                  *g = a->grad >= 0 ? &p->gradient[a->grad] : NULL;

    switch ((enum act)a->kind) {
    case ACT_F:
        pipe_forward(p, a);
        break;
    case ACT_B:
    case ACT_I:
        pipe_backward(p, a);
        break;
    case ACT_SEND_F:
        comm_send(p->pp, q, b->out, STAGE_N, F32, a->peer, 0, &b->going);
        break;
    case ACT_RECV_F:
        comm_wait(q, &b->going);
        comm_recv(p->pp, q, b->in, STAGE_N, F32, a->peer, 0, &b->coming);
        break;
    case ACT_SEND_B:
        comm_send(p->pp, q, g->in, STAGE_N, F32, a->peer, 1, &g->going);
        break;
    case ACT_RECV_B:
        comm_wait(q, &g->going);
        comm_recv(p->pp, q, g->in, STAGE_N, F32, a->peer, 1, &g->coming);
        break;
    case ACT_MOVE_F:
        comm_wait(q, &p->slot[a->to_slot].going);
        copy(p->slot[a->to_slot].in, b->out);
        break;
    case ACT_MOVE_B:
        comm_wait(q, &p->gradient[a->to_grad].going);
        copy(p->gradient[a->to_grad].in, g->in);
        break;
    case ACT_REDUCE:
        comm_wait(q, &p->reducing);
        comm_all_reduce(p->grad, q, p->sums, STAGE_N, F32, COMM_SUM, &p->reducing);
        break;
    default:
        break;
    }
}

static void pipe_run(struct pipe *p)
{
    for (int i = 0; i < p->s.n[p->pp->rank]; i++)
        pipe_act(p, &p->s.list[p->pp->rank][i]);
    for (int i = 0; i < SLOTS_MAX; i++) {
        comm_wait(q, &p->slot[i].coming);
        comm_wait(q, &p->slot[i].going);
        comm_wait(q, &p->gradient[i].coming);
        comm_wait(q, &p->gradient[i].going);
    }
    comm_wait(q, &p->reducing);
}

static int pipe_holds(struct pipe *p, const char *name, float *x, float *y)
{
    struct err e = { "" };
    int chunks = strcmp(name, "interleaved") == 0 ? 2 : 1, ok, me = p->pp->rank;
    size_t bytes = MBS * STAGE_N * sizeof *x;

    if (schedule_build(&p->s, name, p->pp->size, chunks, MBS, &e) != OK)
        die(E_BUG, "%s", e.text);
    BUG_IF(p->s.slots[me] > SLOTS_MAX || p->s.grads[me] > SLOTS_MAX);
    pipe_run(p);
    download(y, p->found, bytes);
    fill(x, F32, MBS * STAGE_N, 2); /* the gradients, at the first stage */
    ok = p->s.stage_of[me * chunks] != 0 || memcmp(x, y, bytes) == 0;
    fill(x, F32, MBS * STAGE_N, 1); /* what went in, at the last */
    ok &= p->s.stage_of[me * chunks + chunks - 1] != p->pp->size * chunks - 1 ||
          memcmp(x, y, bytes) == 0;
    schedule_free(&p->s);
    return ok;
}

static void pipe_open(struct pipe *p, float *x)
{
    size_t one = STAGE_N * sizeof *x;

    for (int i = 0; i < SLOTS_MAX; i++) {
        p->slot[i].in = device_take(one);
        p->slot[i].out = device_take(one);
        p->gradient[i].in = device_take(one);
    }
    p->first = device_take(MBS * one);
    p->last = device_take(MBS * one);
    p->found = device_take(MBS * one);
    p->scratch = device_take(one);
    p->sums = device_take(one);
    fill(x, F32, MBS * STAGE_N, 1);
    upload(p->first, x, MBS * one);
    fill(x, F32, MBS * STAGE_N, 2);
    upload(p->last, x, MBS * one);
    upload(p->scratch, x, one);
    upload(p->sums, x, one);
}

static void pipe_close(struct pipe *p)
{
    for (int i = 0; i < SLOTS_MAX; i++) {
        device_give(p->slot[i].in);
        device_give(p->slot[i].out);
        device_give(p->gradient[i].in);
    }
    device_give(p->first);
    device_give(p->last);
    device_give(p->found);
    device_give(p->scratch);
    device_give(p->sums);
}

static void test_pipeline(void)
{
    int pp = world->size > 2 ? world->size / 2 : world->size, width = world->size / pp;
    struct comm *host[2] = { comm_mpi_split(world, world->rank % width, world->rank, "pp"),
                             comm_mpi_split(world, world->rank / width, world->rank, "tp") };
    struct pipe *p = mem_take(sizeof *p);
    float *x = mem_take(2 * MBS * STAGE_N * sizeof *x);

    p->pp = create(host[0], 2);
    p->tp = create(host[1], 0);
    p->grad = create(host[1], 0);
    pipe_open(p, x);
    for (int i = 0; schedule_names[i]; i++)
        ranks_ok(pp < 2 || MBS % pp != 0 || pipe_holds(p, schedule_names[i], x, x + MBS * STAGE_N),
                 "a pipeline of %d stages: %s", pp, schedule_names[i]);
    pipe_close(p);
    destroy(p->grad);
    destroy(p->tp);
    destroy(p->pp);
    comm_mpi_free(host[1]);
    comm_mpi_free(host[0]);
    mem_give(p);
    mem_give(x);
}

/* ---- mistakes ---- */

/* Without the wait the queue sees the old values where streams are lazy. */
static void test_missing_wait(struct comm *c)
{
    const char *streams = getenv("CUEMU_STREAMS");
    struct request r = { 0 };
    float x = 1, y = 0;
    dptr d = device_take(sizeof x);

    upload(d, &x, sizeof x);
    comm_all_reduce(c, q, d, 1, F32, COMM_SUM, &r);
    download(&y, d, sizeof y);
    ranks_ok(!streams || strcmp(streams, "lazy") != 0 || y == 1, "a missing wait shows");
    comm_wait(q, &r);
    download(&y, d, sizeof y);
    ranks_ok(y == (float)c->size, "and a wait helps");
    device_give(d);
}

/* The emulation must notice each. */
static void plant(struct comm *c, const char *mistake)
{
    struct request r = { 0 };
    dptr d = device_take(1000);
    char here[1000];

    if (strcmp(mistake, "count") == 0)
        comm_all_reduce(c, q, d, 10 + c->rank, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "order") == 0 && c->rank == 0)
        comm_all_reduce(c, q, d, 10, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "order") == 0)
        comm_broadcast(c, q, d, 40, U8, 0, &r);
    else if (strcmp(mistake, "memory") == 0)
        comm_all_reduce(c, q, at(here), 10, F32, COMM_SUM, &r);
    else if (strcmp(mistake, "receive") == 0)
        comm_recv(c, q, d, 10, F32, (c->rank + 1) % c->size, 0, &r);
    comm_wait_host(q, &r);
    die(E_BUG, "nobody noticed: %s", mistake);
}

static void open_queue(void)
{
    int devices;

    cuda_check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    queue.device = world->rank % devices;
    cuda_check(cudaSetDevice(queue.device), "cudaSetDevice");
    cuda_check(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking), "cudaStreamCreate");
}

int main(int argc, char **argv)
{
    struct comm *c;

    world = comm_mpi_start(&argc, &argv);
    BUG_IF(argc < 2);
    over_nccl = strcmp(argv[1], "nccl") == 0;
    open_queue();
    c = create(world, 2);
    if (argc > 2)
        plant(c, argv[2]);
    ranks_plan(world, 6 * COUNT_OF(types) + (world->size > 1 ? 9 : 2));
    test_missing_wait(c);
    for (int i = 0; i < COUNT_OF(types); i++)
        test_type(c, world, types[i]);
    if (c->size > 1)
        test_messages(c);
    destroy(c);
    if (world->size > 1) {
        test_flights();
        test_pipeline();
    }
    cuda_check(cudaStreamDestroy(queue.stream), "cudaStreamDestroy");
    comm_mpi_end(world);
    return tap_done();
}
