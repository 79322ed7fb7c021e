#include "layers/block.h"

void block_acts_place(struct block_acts *a, struct arena *step, const struct env *e)
{
    const struct dims *d = &e->d;

    a->n1 = operand_take(step, e->Ts * d->D, e->t);
    a->rstd1 = operand_take(step, e->Ts, e->stat);
    if (d->qknorm) {
        a->raw = operand_take(step, e->T * d->qkv, e->t);
        a->rstd_q = operand_take(step, e->T * d->Hl, e->stat);
        a->rstd_k = operand_take(step, e->T * d->Gl, e->stat);
    }
    a->qkv = operand_take(step, e->T * d->qkv, e->t);
    a->o = operand_take(step, e->T * e->att.ldo, e->t);
    a->lse = operand_take(step, e->T * d->Hl, e->stat);
    a->x2 = operand_take(step, e->Ts * d->D, e->t);
    a->n2 = operand_take(step, e->Ts * d->D, e->t);
    a->rstd2 = operand_take(step, e->Ts, e->stat);
    a->gu = operand_take(step, e->T * 2 * d->Fl, e->t);
    a->h = operand_take(step, e->T * d->Fl, e->t);
}

void block_stash_place(struct block_stash *s, struct arena *step, const struct env *e)
{
    const struct dims *d = &e->d;

    s->dy2 = operand_take(step, e->T * d->D, e->t);
    s->dgu = operand_take(step, e->T * 2 * d->Fl, e->t);
    s->dn2 = operand_take(step, e->Ts * d->D, e->t);
    s->dy1 = operand_take(step, e->T * d->D, e->t);
    if (d->qknorm)
        s->dqk = operand_take(step, e->T * d->qkv, e->t);
    s->dqkv = operand_take(step, e->T * d->qkv, e->t);
    s->dn1 = operand_take(step, e->Ts * d->D, e->t);
}

void block_forward(struct env *e, int layer, struct block_acts *a, struct operand out,
                   const struct micro_batch *mb)
{
    struct block_weights w = weights_acquire(e, layer);
    const struct ops *o = e->ops;
    int64_t D = e->d.D;

    o->rmsnorm(e->q, a->n1, D, a->rstd1, OPERAND_NONE, a->x, D, OPERAND_NONE, w.norm1, e->Ts, 1, D,
               e->d.eps);
    attention_forward(e, layer, &w, a, e->s.r, mb);
    o->rmsnorm(e->q, a->n2, D, a->rstd2, a->x2, a->x, D, e->s.r, w.norm2, e->Ts, 1, D, e->d.eps);
    mlp_forward(e, &w, a, e->s.r);
    o->add(e->q, out, a->x2, e->s.r, e->Ts * D);
    weights_release(e, layer);
}

/* The stash keeps its own copy of a gradient that the stream overwrites. */
static void stash_gradient(struct env *e, struct operand keep, struct operand g)
{
    if (e->g->tp == 1)
        e->ops->copy(e->q, keep.p, g.p, (size_t)(e->T * e->d.D) * dtype_size(g.t));
    else
        tp_gather(e, g, keep);
}

void block_grad_input(struct env *e, int layer, const struct block_acts *a, struct block_stash *s,
                      struct operand g, const struct micro_batch *mb)
{
    struct block_weights w = weights_acquire(e, layer);
    const struct ops *o = e->ops;
    int64_t D = e->d.D;

    stash_gradient(e, s->dy2, g);
    mlp_grad_input(e, &w, a, s);
    o->rmsnorm_grad_input(e->q, g, D, g, s->dn2, D, a->x2, D, a->rstd2, w.norm2, e->Ts, 1, D);
    stash_gradient(e, s->dy1, g);
    attention_grad_input(e, &w, a, s, mb);
    o->rmsnorm_grad_input(e->q, g, D, g, s->dn1, D, a->x, D, a->rstd1, w.norm1, e->Ts, 1, D);
    weights_release(e, layer);
}

void block_grad_weight(struct env *e, int layer, const struct block_acts *a,
                       const struct block_stash *s)
{
    struct block_weights dw = weights_grads(e, layer);
    const struct ops *o = e->ops;
    int64_t D = e->d.D;

    mlp_grad_weight(e, &dw, a, s);
    o->rmsnorm_grad_weight(e->q, dw.norm2, s->dn2, D, a->x2, D, a->rstd2, e->Ts, 1, D);
    attention_grad_weight(e, &dw, a, s);
    o->rmsnorm_grad_weight(e->q, dw.norm1, s->dn1, D, a->x, D, a->rstd1, e->Ts, 1, D);
}
