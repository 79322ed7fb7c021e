#include "cuda/comm_staged.h"

struct staged *staged_all;

/* ---- windows ---- */

static int64_t bytes_of(const struct transfer *x, int64_t elements)
{
    return elements * (int64_t)dtype_size(x->type);
}

/* Elements of a piece of n that window w takes. */
static int64_t part(const struct transfer *x, int64_t n, int64_t w)
{
    return max_i64(0, min_i64(x->step, n - w * x->step));
}

static void copy(struct staged *s, char *chunk, char *device, int64_t bytes, int stage)
{
    void *to = stage == DOWN ? chunk : device, *from = stage == DOWN ? device : chunk;

    if (bytes > 0)
        cuda_check(cudaMemcpyAsync(to, from, (size_t)bytes,
                                   stage == DOWN ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                                   s->copies),
                   "cudaMemcpyAsync");
}

static void window_copy(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                        int stage)
{
    enum span span = stage == DOWN ? x->kind->down : x->kind->up;
    const int64_t *n = stage == DOWN ? x->send : x->recv;
    char *device = stage == DOWN ? x->in : x->out;
    int me = s->base.self.rank, pieces = span == SPAN_FLAT ? 1 : s->base.self.size;

    for (int r = 0; r < pieces && span != SPAN_NONE; r++) {
        int64_t bytes = bytes_of(x, part(x, n[r], w));
        if (span == SPAN_OWN ? r == me : span != SPAN_OTHERS || r != me)
            copy(s, chunk, device + bytes_of(x, w * x->step), bytes, stage);
        chunk += bytes;
        device += span == SPAN_OWN ? 0 : bytes_of(x, n[r]);
    }
}

/* What the window takes of each piece; returns the bytes before mine. */
static int64_t window_counts(struct staged *s, const struct transfer *x, const int64_t *pieces,
                             int64_t w, int64_t *counts)
{
    for (int r = 0; r < s->base.self.size; r++)
        counts[r] = part(x, pieces[r], w);
    return bytes_of(x, device_comm_before(counts, s->base.self.rank));
}

/* ---- what each kind of transfer is ---- */

static void over_all_reduce(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                            struct request *r)
{
    comm_all_reduce(s->base.host, NULL, (dptr){ chunk }, part(x, x->send[0], w), x->type, x->op, r);
}

static void over_broadcast(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                           struct request *r)
{
    comm_broadcast(s->base.host, NULL, (dptr){ chunk }, part(x, x->send[0], w), x->type, x->peer,
                   r);
}

static void over_send(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                      struct request *r)
{
    comm_send(s->base.host, NULL, (dptr){ chunk }, part(x, x->send[0], w), x->type, x->peer, x->tag,
              r);
}

static void over_recv(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                      struct request *r)
{
    comm_recv(s->base.host, NULL, (dptr){ chunk }, part(x, x->recv[0], w), x->type, x->peer, x->tag,
              r);
}

static void over_reduce_scatter(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                                struct request *r)
{
    char *own = chunk + window_counts(s, x, x->send, w, s->counts[0]);

    comm_reduce_scatter(s->base.host, NULL, (dptr){ chunk }, (dptr){ own }, s->counts[0], x->type,
                        r);
}

static void over_all_gather(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                            struct request *r)
{
    char *own = chunk + window_counts(s, x, x->send, w, s->counts[0]);

    comm_all_gather(s->base.host, NULL, (dptr){ own }, (dptr){ chunk }, s->counts[0], x->type, r);
}

/* The second half of the chunk receives. */
static void over_all_to_all(struct staged *s, const struct transfer *x, char *chunk, int64_t w,
                            struct request *r)
{
    window_counts(s, x, x->send, w, s->counts[0]);
    window_counts(s, x, x->recv, w, s->counts[1]);
    comm_all_to_all(s->base.host, NULL, (dptr){ chunk }, s->counts[0],
                    (dptr){ chunk + CHUNK_BYTES / 2 }, s->counts[1], x->type, r);
}

const struct kind staged_kind_all_reduce = { SPAN_FLAT, SPAN_FLAT, over_all_reduce };
const struct kind staged_kind_reduce_scatter = { SPAN_PIECES, SPAN_OWN, over_reduce_scatter };
const struct kind staged_kind_all_gather = { SPAN_OWN, SPAN_OTHERS, over_all_gather };
const struct kind staged_kind_all_to_all = { SPAN_OTHERS, SPAN_OTHERS, over_all_to_all };
const struct kind staged_kind_broadcast_root = { SPAN_FLAT, SPAN_NONE, over_broadcast };
const struct kind staged_kind_broadcast = { SPAN_NONE, SPAN_FLAT, over_broadcast };
const struct kind staged_kind_send = { SPAN_FLAT, SPAN_NONE, over_send };
const struct kind staged_kind_recv = { SPAN_NONE, SPAN_FLAT, over_recv };

/* ---- progress ---- */

/* The lane comes to this transfer. */
static void begin(struct staged *s, struct transfer *x)
{
    int me = s->base.self.rank;
    int64_t n = x->send[me];

    x->begun = 1;
    cuda_check(cudaStreamWaitEvent(s->copies, x->start, 0), "cudaStreamWaitEvent");
    if (x->kind == &staged_kind_all_gather)
        device_copy((dptr){ x->out + bytes_of(x, device_comm_before(x->recv, me)) },
                    (dptr){ x->in }, bytes_of(x, n), s->copies);
    if (x->kind != &staged_kind_all_to_all)
        return;
    device_copy((dptr){ x->out + bytes_of(x, device_comm_before(x->recv, me)) },
                (dptr){ x->in + bytes_of(x, device_comm_before(x->send, me)) }, bytes_of(x, n),
                s->copies);
    comm_all_reduce(s->base.host, NULL, (dptr){ (char *)&x->windows }, 1, I64, COMM_MAX,
                    &x->agreeing);
}

static int copied(const struct slot *t)
{
    return device_over(cudaEventQuery(t->copied), "a copy of a transfer");
}

static void stage_copy(struct staged *s, struct slot *t, struct transfer *x, int stage)
{
    char *half =
        x->kind == &staged_kind_all_to_all && stage == UP ? t->chunk + CHUNK_BYTES / 2 : t->chunk;

    window_copy(s, x, half, x->went[stage], stage);
    cuda_check(cudaEventRecord(t->copied, s->copies), "cudaEventRecord");
    x->went[stage]++;
}

/* 1 if anything moved. A chunk is written by the host transfer only when the copies before are
 * done with it. */
static int transfer_step(struct staged *s, struct lane *l, struct transfer *x)
{
    int moved = 0;
    struct slot *t;

    for (; x->went[DOWN] < x->windows && x->went[DOWN] - x->went[UP] < SLOTS; moved = 1)
        stage_copy(s, &l->slot[x->went[DOWN] % SLOTS], x, DOWN);
    for (; x->went[OVER] < x->went[DOWN]; moved = 1) {
        t = &l->slot[x->went[OVER] % SLOTS];
        if (!copied(t))
            break;
        x->kind->over(s, x, t->chunk, x->went[OVER]++, &t->over);
    }
    for (; x->went[UP] < x->went[OVER]; moved = 1) {
        t = &l->slot[x->went[UP] % SLOTS];
        if (!comm_test(NULL, &t->over))
            break;
        stage_copy(s, t, x, UP);
    }
    return moved;
}

static int lane_step(struct staged *s, struct lane *l)
{
    int moved = 0;
    struct transfer *x;

    while ((x = l->first)) {
        if (!x->begun)
            begin(s, x);
        if (!comm_test(NULL, &x->agreeing))
            break;
        moved |= transfer_step(s, l, x);
        if (x->went[UP] < x->windows)
            break;
        cuda_check(cudaEventRecord(x->arrived, s->copies), "cudaEventRecord");
        x->done = moved = 1;
        l->first = x->next;
    }
    return moved;
}

int staged_progress(void)
{
    int moved = 0;

    for (struct staged *s = staged_all; s; s = s->next)
        for (int i = 0; i < s->lanes; i++)
            moved |= lane_step(s, &s->lane[i]);
    return moved;
}
