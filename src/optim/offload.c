#include "optim/offload.h"

enum { CHUNK = 1 << 20 }; /* elements that go to and fro at a time */

void offload_place(struct optim *o, struct arena *state)
{
    int there = optim_is_offloaded(o);
    int64_t n = there ? CHUNK : 0;

    for (int i = 0; i < COUNT_OF(o->host_grad); i++)
        o->host_grad[i] = operand_take(state, n, o->type);
    o->host_weight = operand_take(state, n, o->weight_type);
    o->host_norm = arena_take(state, there ? sizeof(double) : 0);
    o->host_clip = arena_take(state, there ? sizeof(double) : 0);
}

/* A chunk of a piece; n 0: past the last. */
struct walk {
    int piece;
    int64_t at, n;
};

static struct walk walk_next(const struct optim *o, struct walk w)
{
    w.at += w.n;
    while (w.piece < o->npieces && w.at >= o->pieces[w.piece].count) {
        w.piece++;
        w.at = 0;
    }
    w.n = w.piece < o->npieces ? min_i64(CHUNK, o->pieces[w.piece].count - w.at) : 0;
    return w;
}

static void fetch_gradient(struct optim *o, struct walk w, struct operand to)
{
    if (w.n > 0)
        o->ops->download(o->q, to.p.p, operand_at(o->pieces[w.piece].grad, w.at).p,
                         (size_t)w.n * dtype_size(o->type));
}

static void send_weights(struct optim *o, struct walk w)
{
    o->ops->upload(o->q, operand_at(o->pieces[w.piece].weight, w.at).p, o->host_weight.p.p,
                   (size_t)w.n * dtype_size(o->weight_type));
}

void offload_update(struct optim *o, const struct optim_step *s, struct adamw_step a, double norm)
{
    const struct ops *host = o->state_ops;
    struct walk w = walk_next(o, (struct walk){ 0 }), next;
    int k = 0;

    host->upload(o->state_q, o->host_norm, &norm, sizeof norm);
    host->clip_factor(o->state_q, o->host_clip, o->host_norm, s->clip, 1 / s->scale);
    fetch_gradient(o, w, o->host_grad[k]);
    for (; w.n > 0; w = next, k = 1 - k) {
        const struct piece *p = &o->pieces[w.piece];
        o->ops->sync(o->q);
        next = walk_next(o, w);
        fetch_gradient(o, next, o->host_grad[1 - k]); /* while the CPU works on this one */
        a.decay = p->p->row->decayed ? s->weight_decay : 0;
        host->adamw(o->state_q, operand_at(p->master, w.at), operand_at(p->exp_avg, w.at),
                    operand_at(p->exp_avg_sq, w.at), o->host_grad[k], o->host_weight, o->host_clip,
                    &a, w.n);
        host->sync(o->state_q);
        send_weights(o, w);
    }
}

void offload_weights(struct optim *o)
{
    struct walk w;

    for (w = walk_next(o, (struct walk){ 0 }); w.n > 0; w = walk_next(o, w)) {
        o->state_ops->convert(o->state_q, o->host_weight,
                              operand_at(o->pieces[w.piece].master, w.at), w.n);
        o->state_ops->sync(o->state_q);
        send_weights(o, w);
    }
}
