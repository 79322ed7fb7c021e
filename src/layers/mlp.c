#include "layers/block.h"

void mlp_forward(struct env *e, const struct block_weights *w, struct block_acts *a,
                 struct operand r)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand in = tp_gather(e, a->n2, e->s.wide), partial = tp_partial(e, r);

    o->linear(e->q, a->gu, 2 * d->Fl, in, d->D, w->wgu, e->T, 2 * d->Fl, d->D, 0);
    if (operand_given(w->bgu))
        o->bias(e->q, a->gu, 2 * d->Fl, w->bgu, e->T, 2 * d->Fl);
    o->swiglu(e->q, a->h, a->gu, e->T, d->Fl);
    o->linear(e->q, partial, d->D, a->h, d->Fl, w->wdown, e->T, d->D, d->Fl, 0);
    tp_scatter(e, partial, r);
    if (operand_given(w->bdown))
        o->bias(e->q, r, d->D, w->bdown, e->Ts, d->D);
}

void mlp_grad_input(struct env *e, const struct block_weights *w, const struct block_acts *a,
                    struct block_stash *s)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand partial = tp_partial(e, s->dn2);

    o->linear_grad_input(e->q, e->s.dh, d->Fl, s->dy2, d->D, w->wdown, e->T, d->D, d->Fl, 0);
    o->swiglu_grad(e->q, s->dgu, e->s.dh, a->gu, e->T, d->Fl);
    o->linear_grad_input(e->q, partial, d->D, s->dgu, 2 * d->Fl, w->wgu, e->T, 2 * d->Fl, d->D, 0);
    tp_scatter(e, partial, s->dn2);
}

void mlp_grad_weight(struct env *e, const struct block_weights *dw, const struct block_acts *a,
                     const struct block_stash *s)
{
    const struct ops *o = e->ops;
    const struct dims *d = &e->d;
    struct operand in = tp_gather(e, a->n2, e->s.wide);

    o->linear_grad_weight(e->q, dw->wdown, s->dy2, d->D, a->h, d->Fl, e->T, d->D, d->Fl);
    o->linear_grad_weight(e->q, dw->wgu, s->dgu, 2 * d->Fl, in, d->D, e->T, 2 * d->Fl, d->D);
    if (operand_given(dw->bgu))
        o->bias_grad(e->q, dw->bgu, s->dgu, 2 * d->Fl, e->T, 2 * d->Fl);
    if (operand_given(dw->bdown))
        o->bias_grad(e->q, dw->bdown, tp_mine(e, s->dy2), d->D, e->Ts, d->D);
}
