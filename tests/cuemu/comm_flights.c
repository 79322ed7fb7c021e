#include "comm.h"

#include "base/arena.h"
#include "base/rng.h"
#include "schedule/schedule.h"

#include <string.h>

/* ---- messages ---- */

int messages_hold(struct comm *c)
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
    device_give(dx);
    device_give(dy);
    mem_give(x);
    mem_give(y);
    mem_give(z);
    return ok;
}

enum { FLIGHT_N = 20011 };

int flights_hold(struct comm **on, struct comm **host, int round)
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
        ok &= same(y, x, F32, FLIGHT_N, on[k % 3]->size);
    }
    fill(x, F32, FLIGHT_N, 1000 + (uint64_t)from);
    download(y, got, bytes);
    ok &= memcmp(x, y, bytes) == 0;
    device_give(d);
    mem_give(x);
    mem_give(y);
    return ok;
}

/* ---- a pipeline ---- */

enum { STAGE_N = 3001, MBS = 12, SLOTS_MAX = 64 };

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

int pipeline_holds(struct comm *pp, struct comm *tp, struct comm *grad, const char *schedule)
{
    int chunks = strcmp(schedule, "interleaved") == 0 ? 2 : 1, ok, me = pp->rank;
    size_t bytes = MBS * STAGE_N * sizeof(float);
    float *x = mem_take(bytes), *y = mem_take(bytes);
    struct pipe *p = mem_take(sizeof *p);
    struct err e = { "" };

    p->pp = pp;
    p->tp = tp;
    p->grad = grad;
    pipe_open(p, x);
    if (schedule_build(&p->s, schedule, pp->size, chunks, MBS, &e) != OK)
        die(E_BUG, "%s", e.text);
    BUG_IF(p->s.slots[me] > SLOTS_MAX || p->s.grads[me] > SLOTS_MAX);
    pipe_run(p);
    download(y, p->found, bytes);
    fill(x, F32, MBS * STAGE_N, 2); /* the gradients, at the first stage */
    ok = p->s.stage_of[me * chunks] != 0 || memcmp(x, y, bytes) == 0;
    fill(x, F32, MBS * STAGE_N, 1); /* what went in, at the last */
    ok &= p->s.stage_of[me * chunks + chunks - 1] != pp->size * chunks - 1 ||
          memcmp(x, y, bytes) == 0;
    schedule_free(&p->s);
    pipe_close(p);
    mem_give(p);
    mem_give(x);
    mem_give(y);
    return ok;
}
