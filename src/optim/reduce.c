#include "optim/optim.h"

static size_t bytes_of(const struct optim *o, int64_t n)
{
    return (size_t)n * dtype_size(o->type);
}

static struct operand stretch_of(const struct optim *o, const struct stretch *r)
{
    return operand_at(o->grads[r->bucket], r->at);
}

static int in_chunk(const struct optim *o, const struct stretch *r, int chunk)
{
    return o->ps->b[r->bucket].chunk == chunk;
}

/* Replicated tensors under sequence parallelism: one sum over tp for all of the chunk. */
static void sum_partial(struct optim *o, int chunk)
{
    struct request wait = { 0 };
    int64_t n = 0;

    for (int i = 0; i < o->npartial; i++) {
        const struct stretch *r = &o->partial[i];
        if (!in_chunk(o, r, chunk))
            continue;
        o->ops->copy(o->q, operand_at(o->packed, n).p, stretch_of(o, r).p, bytes_of(o, r->count));
        n += r->count;
    }
    if (n == 0)
        return;
    comm_all_reduce(o->g->tp_comm, o->q, o->packed.p, n, o->type, COMM_SUM, &wait);
    comm_wait(o->q, &wait);
    n = 0;
    for (int i = 0; i < o->npartial; i++) {
        const struct stretch *r = &o->partial[i];
        if (!in_chunk(o, r, chunk))
            continue;
        o->ops->copy(o->q, stretch_of(o, r).p, operand_at(o->packed, n).p, bytes_of(o, r->count));
        n += r->count;
    }
}

static void sum_copies(struct optim *o, int chunk)
{
    struct request wait = { 0 };

    for (int i = 0; i < o->ncopies; i++) {
        const struct stretch *r = &o->copies[i];
        if (!in_chunk(o, r, chunk))
            continue;
        comm_all_reduce(o->g->kv, o->q, stretch_of(o, r).p, r->count, o->type, COMM_SUM, &wait);
        comm_wait(o->q, &wait);
    }
}

static void reduce_bucket(struct optim *o, int b)
{
    const struct slice *s = &o->slices[(int64_t)b * o->ranks + o->rank];

    comm_reduce_scatter(o->g->grad, o->q, o->grads[b].p, operand_at(o->grads[b], s->first).p,
                        o->counts + (int64_t)b * o->ranks, o->type, &o->requests[b]);
}

void optim_reduce_chunk(struct optim *o, int chunk)
{
    sum_partial(o, chunk);
    sum_copies(o, chunk);
    for (int b = 0; b < o->ps->nbuckets; b++)
        if (o->ps->b[b].chunk == chunk && !o->ps->b[b].tied)
            reduce_bucket(o, b);
}

/* The two ends of a tied matrix: first + last, the same on both. */
static void sum_tied(struct optim *o)
{
    struct request wait = { 0 };

    for (int b = 0; b < o->ps->nbuckets; b++) {
        int tied = o->ps->b[b].tied;
        int64_t n = o->ps->b[b].count;
        if (tied == 2 && o->alias_of >= 0) {
            struct operand first = o->grads[o->alias_of];
            o->ops->add(o->q, first, first, o->grads[b], n);
            reduce_bucket(o, o->alias_of);
        } else if (tied && o->tied_peer) {
            comm_all_reduce(o->tied_peer, o->q, o->grads[b].p, n, o->type, COMM_SUM, &wait);
            comm_wait(o->q, &wait);
            reduce_bucket(o, b);
        }
    }
}

void optim_finish_reduce(struct optim *o)
{
    sum_tied(o);
    for (int b = 0; b < o->ps->nbuckets; b++)
        comm_wait(o->q, &o->requests[b]);
    for (int b = 0; b < o->ps->nbuckets && o->zero_stage == 0; b++) {
        const struct slice *s = &o->slices[(int64_t)b * o->ranks + o->rank];
        comm_all_gather(o->g->grad, o->q, operand_at(o->grads[b], s->first).p, o->grads[b].p,
                        o->counts + (int64_t)b * o->ranks, o->type, &o->requests[b]);
        comm_wait(o->q, &o->requests[b]);
    }
}

void optim_zero_gradients(struct optim *o)
{
    for (int b = 0; b < o->ps->nbuckets; b++)
        o->ops->zero(o->q, o->grads[b].p, bytes_of(o, o->ps->b[b].count));
}
