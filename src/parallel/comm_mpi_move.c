#include "parallel/comm_mpi_impl.h"

#include "base/arena.h"

#include <string.h>

enum phase { PHASE_END, PHASE_REDUCE, PHASE_GATHER, PHASE_EXCHANGE, PHASE_SPREAD, PHASE_DEAL };

/* What a collective consists of. A large broadcast deals out pieces and gathers them. */
static const enum phase program[OP_KINDS][3] = {
    [OP_ALL_REDUCE] = { PHASE_REDUCE, PHASE_GATHER },
    [OP_REDUCE_SCATTER] = { PHASE_REDUCE },
    [OP_ALL_GATHER] = { PHASE_GATHER },
    [OP_ALL_TO_ALL] = { PHASE_EXCHANGE },
    [OP_BROADCAST] = { PHASE_SPREAD },
    [OP_BROADCAST_LARGE] = { PHASE_DEAL, PHASE_GATHER },
};

struct op *comm_mpi_op_take(struct mpi_comm *m, enum op_kind kind)
{
    struct op *o = m->spare;
    int64_t *counts;

    if (o) {
        m->spare = o->next;
        counts = o->send;
    } else { /* more in flight than ever before */
        size_t n = (size_t)m->self.size;
        o = mem_take(sizeof *o + 2 * n * sizeof *counts);
        counts = (int64_t *)(o + 1);
    }
    *o = (struct op){ .kind = kind,
                      .send = counts,
                      .recv = counts + m->self.size,
                      .p2p = { .posted = MPI_REQUEST_NULL } };
    return o;
}

/* ---- streams ---- */

static int stream_idle(const struct stream *s)
{
    return s->left == 0 && s->posted == MPI_REQUEST_NULL;
}

static int request_test(MPI_Request *r)
{
    int done = 1;

    if (*r != MPI_REQUEST_NULL)
        MPI_OK(MPI_Test(r, &done, MPI_STATUS_IGNORE));
    return done;
}

static int tag_of(const struct mpi_comm *m, const struct op *o)
{
    return m->group * TAGS_EACH + (o->kind == OP_P2P ? o->tag : TAGS_EACH - 1);
}

static void stream_post(struct mpi_comm *m, const struct op *o, struct stream *s, int64_t chunk,
                        int sending, int peer)
{
    int n = (int)min_i64(chunk, s->left);
    MPI_Comm mpi = m->engine->mpi;

    peer = m->world_rank[peer];
    if (sending)
        MPI_OK(MPI_Isend(s->at, n, MPI_BYTE, peer, tag_of(m, o), mpi, &s->posted));
    else
        MPI_OK(MPI_Irecv(s->at, n, MPI_BYTE, peer, tag_of(m, o), mpi, &s->posted));
    s->at += n;
    s->left -= n;
}

/* One step of a collective's stream: 1 if it moved. */
static int stream_step(struct mpi_comm *m, const struct op *o, struct stream *s, int64_t chunk,
                       int sending, int peer)
{
    int moved = 0;

    if (s->posted != MPI_REQUEST_NULL) {
        if (!request_test(&s->posted))
            return 0;
        moved = 1;
    }
    if (s->left > 0) {
        stream_post(m, o, s, chunk, sending, peer);
        moved = 1;
    }
    return moved;
}

static void stream_set(struct stream *s, char *at, int64_t bytes)
{
    *s = (struct stream){ .at = at, .left = bytes, .posted = MPI_REQUEST_NULL };
}

/* ---- reductions: pieces arrive in the order (chunk, rank) and are summed in that order ---- */

static void sum_value(struct mpi_comm *m, const struct op *o, const char *value, int in_slot,
                      int64_t at, int64_t n, int last)
{
    char *dst = last ? o->out + at : m->sums;

    if (!m->left) {
        m->left = value;
        m->held = in_slot;
        return;
    }
    o->sum(dst, m->left, value, n / o->element);
    m->left = last ? NULL : dst;
    m->held = 0;
}

static int ring_source(const struct mpi_comm *m, int64_t i)
{
    int s = (int)(i % (m->self.size - 1));

    return s < m->self.rank ? s : s + 1;
}

static int64_t ring_bytes(const struct mpi_comm *m, const struct op *o, int64_t i)
{
    int64_t at = i / (m->self.size - 1) * SUM_BYTES;

    return min_i64(SUM_BYTES, o->send[m->self.rank] - at);
}

/* Receive i is here: add it, and my own value where its turn comes. */
static void ring_take(struct mpi_comm *m, const struct op *o, int64_t i)
{
    int me = m->self.rank, size = m->self.size, from = ring_source(m, i);
    int64_t at = i / (size - 1) * SUM_BYTES, n = ring_bytes(m, o, i);
    const char *mine = o->in + at, *value = m->slots + i % RING_SLOTS * SUM_BYTES;

    for (int r = 0; r < me; r++)
        mine += o->send[r];
    if (me == 0 && !m->left)
        sum_value(m, o, mine, 0, at, n, 0);
    sum_value(m, o, value, 1, at, n, from == size - 1);
    if (from + 1 == me)
        sum_value(m, o, mine, 0, at, n, me == size - 1);
}

static int ring_step(struct mpi_comm *m, const struct op *o)
{
    int moved = 0;

    for (;;) {
        while (m->posted < m->total && m->posted - m->taken + m->held < RING_SLOTS) {
            int slot = (int)(m->posted % RING_SLOTS);
            MPI_OK(MPI_Irecv(m->slots + (int64_t)slot * SUM_BYTES, (int)ring_bytes(m, o, m->posted),
                             MPI_BYTE, m->world_rank[ring_source(m, m->posted)], tag_of(m, o),
                             m->engine->mpi, &m->ring[slot]));
            m->posted++;
            moved = 1;
        }
        if (m->taken == m->posted || !request_test(&m->ring[m->taken % RING_SLOTS]))
            return moved;
        ring_take(m, o, m->taken++);
        moved = 1;
    }
}

/* ---- phases ---- */

static void phase_set_reduce(struct mpi_comm *m, const struct op *o)
{
    int n = m->self.size, me = m->self.rank;
    char *at = o->in;

    for (int r = 0; r < n; at += o->send[r++])
        if (r != me)
            stream_set(&m->to[r], at, o->send[r]);
    m->total = ceil_div(o->send[me], SUM_BYTES) * (n - 1);
}

static void phase_set_gather(struct mpi_comm *m, const struct op *o)
{
    int n = m->self.size, me = m->self.rank;
    char *at = o->whole, *mine = o->whole;

    for (int r = 0; r < me; r++)
        mine += o->send[r];
    for (int r = 0; r < n; at += o->send[r++])
        if (r != me) {
            stream_set(&m->to[r], mine, o->send[me]);
            stream_set(&m->from[r], at, o->send[r]);
        }
}

static void phase_set_exchange(struct mpi_comm *m, const struct op *o)
{
    char *in = o->in, *out = o->out;

    for (int r = 0; r < m->self.size; r++) {
        if (r != m->self.rank) {
            stream_set(&m->to[r], in, o->send[r]);
            stream_set(&m->from[r], out, o->recv[r]);
        }
        in += o->send[r];
        out += o->recv[r];
    }
}

/* The root sends to each rank its piece (deal) or everything. */
static void phase_set_from_root(struct mpi_comm *m, const struct op *o, int deal)
{
    int n = m->self.size, me = m->self.rank;
    int64_t all = 0, at = 0;

    for (int r = 0; r < n; r++)
        all += o->send[r];
    for (int r = 0; r < n; at += o->send[r++]) {
        char *p = o->whole + (deal ? at : 0);
        int64_t bytes = deal ? o->send[r] : all;
        if (me == o->root && r != me)
            stream_set(&m->to[r], p, bytes);
        if (me == r && r != o->root)
            stream_set(&m->from[o->root], p, bytes);
    }
}

static void phase_set(struct mpi_comm *m, const struct op *o)
{
    for (int r = 0; r < m->self.size; r++) {
        stream_set(&m->to[r], NULL, 0);
        stream_set(&m->from[r], NULL, 0);
    }
    m->posted = m->taken = m->total = 0;
    switch (program[o->kind][o->phase]) {
    case PHASE_REDUCE:
        phase_set_reduce(m, o);
        break;
    case PHASE_GATHER:
        phase_set_gather(m, o);
        break;
    case PHASE_EXCHANGE:
        phase_set_exchange(m, o);
        break;
    case PHASE_SPREAD:
        phase_set_from_root(m, o, 0);
        break;
    case PHASE_DEAL:
        phase_set_from_root(m, o, 1);
        break;
    case PHASE_END:
        break;
    }
}

/* Move all streams of the phase at work. 1 if anything moved; *ended when nothing is left of it. */
static int phase_step(struct mpi_comm *m, const struct op *o, int *ended)
{
    int n = m->self.size, me = m->self.rank, moved = 0;
    int64_t chunk = program[o->kind][o->phase] == PHASE_REDUCE ? SUM_BYTES : MESSAGE_BYTES;

    *ended = 1;
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n, from = (me - k + n) % n;
        moved |= stream_step(m, o, &m->from[from], chunk, 0, from);
        moved |= stream_step(m, o, &m->to[to], chunk, 1, to);
        *ended &= stream_idle(&m->from[from]) && stream_idle(&m->to[to]);
    }
    moved |= ring_step(m, o);
    *ended &= m->taken == m->total;
    return moved;
}

/* An all-reduce goes in segments that stay in the cache from the sum to the gather; small ones are
 * summed by one rank, in few messages. Who sums does not change the order. 0: no segment is left.
 */
static int segment_next(const struct mpi_comm *m, struct op *o)
{
    int64_t size = m->self.size, n = min_i64(o->left, size * SEGMENT_BYTES),
            each = n / size / 64 * 64;

    if (n == 0)
        return 0;
    for (int r = 0; r < size; r++)
        o->send[r] = n <= SMALL_BYTES ? 0 : r < size - 1 ? each : n - each * (size - 1);
    if (n <= SMALL_BYTES)
        o->send[0] = n;
    o->whole = o->in = o->whole + o->passed;
    o->out = o->in;
    for (int r = 0; r < m->self.rank; r++)
        o->out += o->send[r];
    o->passed = n;
    o->left -= n;
    o->phase = 0;
    return 1;
}

/* The next collective of this communicator that has something to do. */
static void collective_begin(struct mpi_comm *m)
{
    struct op *o;

    while ((o = m->op_first)) {
        if (o->kind != OP_ALL_REDUCE || segment_next(m, o)) {
            phase_set(m, o);
            return;
        }
        o->done = 1;
        m->op_first = o->next;
    }
}

static int collectives_step(struct mpi_comm *m)
{
    int moved = 0, ended;
    struct op *o;

    while ((o = m->op_first)) {
        moved |= phase_step(m, o, &ended);
        if (!ended)
            break;
        moved = 1;
        o->phase++;
        if (program[o->kind][o->phase] != PHASE_END || (o->left > 0 && segment_next(m, o))) {
            phase_set(m, o);
            continue;
        }
        o->done = 1;
        m->op_first = o->next;
        collective_begin(m);
    }
    return moved;
}

/* ---- point to point ---- */

/* Messages of one (peer, tag, direction) must be posted in order: a long one may still have pieces
 * to post. */
static int p2p_must_wait(const struct mpi_comm *m, const struct op *o)
{
    for (const struct op *e = m->p2p_first; e != o; e = e->next)
        if (e->p2p.left > 0 && e->peer == o->peer && e->tag == o->tag && e->sending == o->sending)
            return 1;
    return 0;
}

static int p2p_step(struct mpi_comm *m)
{
    int moved = 0;
    struct op *before = NULL, *next;

    for (struct op *o = m->p2p_first; o; o = next) {
        struct stream *s = &o->p2p;
        next = o->next;
        if (s->posted != MPI_REQUEST_NULL) {
            if (!request_test(&s->posted)) {
                before = o;
                continue;
            }
            moved = 1;
        }
        if (s->left > 0 && !p2p_must_wait(m, o)) {
            stream_post(m, o, s, P2P_BYTES, o->sending, o->peer);
            moved = 1;
        }
        if (!stream_idle(s)) {
            before = o;
            continue;
        }
        o->done = 1;
        if (before)
            before->next = next;
        else
            m->p2p_first = next;
        if (m->p2p_last == o)
            m->p2p_last = before;
    }
    return moved;
}

/* ---- start and progress ---- */

static void append(struct op **first, struct op **last, struct op *o)
{
    o->next = NULL;
    if (*first)
        (*last)->next = o;
    else
        *first = o;
    *last = o;
}

void comm_mpi_op_start(struct mpi_comm *m, struct op *o)
{
    if (o->kind == OP_P2P) {
        append(&m->p2p_first, &m->p2p_last, o);
    } else {
        append(&m->op_first, &m->op_last, o);
        if (m->op_first == o)
            collective_begin(m);
    }
    comm_mpi_progress(m->engine);
}

int comm_mpi_progress(struct mpi_engine *g)
{
    int moved = 0;

    for (struct mpi_comm *m = g->first; m; m = m->next) {
        if (m->op_first)
            moved |= collectives_step(m);
        if (m->p2p_first)
            moved |= p2p_step(m);
    }
    return moved;
}
