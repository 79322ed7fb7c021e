#include "layers/block.h"

/* q and k of the normed, rotated row; k and v heads follow the q heads */
static struct operand k_of(const struct env *e, struct operand qkv)
{
    return operand_at(qkv, (int64_t)e->d.Hl * e->d.K);
}

static struct operand v_of(const struct env *e, struct operand qkv)
{
    return operand_at(qkv, (int64_t)(e->d.Hl + e->d.Gl) * e->d.K);
}

static size_t qkv_bytes(const struct env *e)
{
    return (size_t)(e->T * e->d.qkv) * dtype_size(e->t);
}

/* The queries of this call see its own keys or, where keys are kept, those too that came before. */
static void attend(struct env *e, int layer, struct block_acts *a, const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    int64_t width = e->att.ldkv, rows = e->B * e->att.Tk;
    struct operand kept = mb->kept;

    if (!operand_given(kept)) {
        o->attention(e->q, a->o, a->lse, a->qkv, k_of(e, a->qkv), v_of(e, a->qkv), mb->place,
                     mb->start, mb->place, &e->att, 0, e->s.attention);
        return;
    }
    kept = operand_at(kept, (layer - e->first_layer) * rows * width);
    o->put_rows(e->q, kept, width, k_of(e, a->qkv), d->qkv, mb->kept_at, e->T, width);
    o->attention(e->q, a->o, a->lse, a->qkv, kept, operand_at(kept, (int64_t)d->Gl * d->K),
                 mb->place, mb->start, mb->kept_place, &e->att, 0, e->s.attention);
}

void attention_forward(struct env *e, int layer, const struct block_weights *w,
                       struct block_acts *a, struct operand r, const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand in = tp_gather(e, a->n1, e->s.wide), partial = tp_partial(e, r);
    int64_t T = e->T, ld = d->qkv, width = (int64_t)d->Hl * d->K;

    o->linear(e->q, a->qkv, ld, in, d->D, w->wqkv, T, ld, d->D, 0);
    if (operand_given(w->bqkv))
        o->bias(e->q, a->qkv, ld, w->bqkv, T, ld);
    if (operand_given(w->qnorm)) {
        o->copy(e->q, a->raw.p, a->qkv.p, qkv_bytes(e));
        o->rmsnorm(e->q, a->qkv, ld, a->rstd_q, OPERAND_NONE, a->qkv, ld, OPERAND_NONE, w->qnorm, T,
                   d->Hl, d->K, d->eps);
        o->rmsnorm(e->q, k_of(e, a->qkv), ld, a->rstd_k, OPERAND_NONE, k_of(e, a->qkv), ld,
                   OPERAND_NONE, w->knorm, T, d->Gl, d->K, d->eps);
    }
    o->rope(e->q, a->qkv, ld, e->rope, mb->position, T, d->Hl + d->Gl, d->K, 1);
    attend(e, layer, a, mb);
    o->linear(e->q, partial, d->D, a->o, width, w->wo, T, d->D, width, 0);
    tp_scatter(e, partial, r);
    if (operand_given(w->bo))
        o->bias(e->q, r, d->D, w->bo, e->Ts, d->D);
}

void attention_grad_input(struct env *e, const struct block_weights *w, const struct block_acts *a,
                          struct block_stash *s, const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand dqkv = s->dqkv, partial = tp_partial(e, s->dn1);
    int64_t T = e->T, ld = d->qkv, width = (int64_t)d->Hl * d->K;

    o->linear_grad_input(e->q, e->s.dout, width, s->dy1, d->D, w->wo, T, d->D, width, 0);
    o->attention_delta(e->q, e->s.delta, a->o, e->s.dout, &e->att);
    o->attention_grad(e->q, dqkv, k_of(e, dqkv), v_of(e, dqkv), e->s.dout, a->qkv, k_of(e, a->qkv),
                      v_of(e, a->qkv), a->lse, e->s.delta, mb->place, mb->start, mb->place, &e->att,
                      0, e->s.attention);
    o->rope(e->q, dqkv, ld, e->rope, mb->position, T, d->Hl + d->Gl, d->K, -1);
    if (operand_given(w->qnorm)) {
        o->copy(e->q, s->dqk.p, dqkv.p, qkv_bytes(e));
        o->rmsnorm_grad_input(e->q, dqkv, ld, OPERAND_NONE, dqkv, ld, a->raw, ld, a->rstd_q,
                              w->qnorm, T, d->Hl, d->K);
        o->rmsnorm_grad_input(e->q, k_of(e, dqkv), ld, OPERAND_NONE, k_of(e, dqkv), ld,
                              k_of(e, a->raw), ld, a->rstd_k, w->knorm, T, d->Gl, d->K);
    }
    o->linear_grad_input(e->q, partial, d->D, dqkv, ld, w->wqkv, T, ld, d->D, 0);
    tp_scatter(e, partial, s->dn1);
}

void attention_grad_weight(struct env *e, const struct block_weights *dw,
                           const struct block_acts *a, const struct block_stash *s)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand in = tp_gather(e, a->n1, e->s.wide);
    int64_t T = e->T, ld = d->qkv, width = (int64_t)d->Hl * d->K;

    o->linear_grad_weight(e->q, dw->wo, s->dy1, d->D, a->o, width, T, d->D, width);
    if (operand_given(dw->qnorm)) {
        o->rmsnorm_grad_weight(e->q, dw->qnorm, s->dqk, ld, a->raw, ld, a->rstd_q, T, d->Hl, d->K);
        o->rmsnorm_grad_weight(e->q, dw->knorm, k_of(e, s->dqk), ld, k_of(e, a->raw), ld, a->rstd_k,
                               T, d->Gl, d->K);
    }
    if (operand_given(dw->bo))
        o->bias_grad(e->q, dw->bo, tp_mine(e, s->dy1), d->D, e->Ts, d->D);
    if (operand_given(dw->bqkv))
        o->bias_grad(e->q, dw->bqkv, s->dqkv, ld, T, ld);
    o->linear_grad_weight(e->q, dw->wqkv, s->dqkv, ld, in, d->D, T, ld, d->D);
}
