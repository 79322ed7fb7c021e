#include "layers/ends.h"

#include <string.h>

void embedding_forward(struct env *e, struct operand x, const struct micro_batch *mb)
{
    struct embed_weights w = weights_embed(e, e->weights);
    struct operand partial = tp_partial(e, x);

    e->ops->embed(e->q, partial, w.w, mb->ids, w.first, w.rows, e->T, e->d.D);
    tp_scatter(e, partial, x);
}

void embedding_grad(struct env *e, struct operand dx, const struct micro_batch *mb)
{
    struct embed_weights dw = weights_embed(e, e->grads);
    struct operand wide = tp_gather(e, dx, e->s.wide);

    e->ops->embed_grad(e->q, dw.w, wide, mb->ids, dw.first, dw.rows, e->T, e->d.D);
}

/* in [n, elements] of every tp rank -> out [tp][n, elements] */
static void gather_rows(struct env *e, struct operand in, struct operand out, int64_t elements)
{
    int64_t counts[MAX_TP];
    struct request r = { 0 };

    for (int i = 0; i < e->g->tp; i++)
        counts[i] = elements;
    comm_all_gather(e->g->tp_comm, e->q, in.p, out.p, counts, in.t, &r);
    comm_wait(e->q, &r);
}

/* Logits of all rows that the micro-batch asks for: head_rows at a time, of which tp holds the
 * vocabulary in parts one after the other. */
static void head_logits(struct env *e, const struct head_weights *w, struct operand nf,
                        const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    int64_t rows = e->T, D = e->d.D;

    if (mb->rows.p) {
        rows = e->use->rows;
        o->embed(e->q, e->s.picked, nf, mb->rows, 0, e->T, rows, D);
        nf = e->s.picked;
    }
    for (int64_t t = 0; t < rows; t += e->head_rows) {
        int64_t n = min_i64(e->head_rows, rows - t);
        struct operand out = operand_at(mb->logits, t * e->d.Vp);
        struct operand mine = e->g->tp == 1 ? out : e->s.logits;
        o->linear(e->q, mine, w->rows, operand_at(nf, t * D), D, w->head, n, w->rows, D, 0);
        if (e->g->tp > 1)
            gather_rows(e, mine, out, n * w->rows);
    }
}

const void *head_unpack(const struct env *e, const void *logits, int64_t rows, int64_t row,
                        void *to)
{
    int64_t t = row / e->head_rows * e->head_rows, n = min_i64(e->head_rows, rows - t);
    size_t size = dtype_size(e->stat);
    const char *from = (const char *)logits + (size_t)(t * e->d.Vp) * size;

    if (e->g->tp == 1)
        return from + (size_t)((row - t) * e->d.Vl) * size;
    for (int64_t i = 0; i * e->d.Vl < e->d.V; i++)
        memcpy((char *)to + (size_t)(i * e->d.Vl) * size,
               from + (size_t)((i * n + row - t) * e->d.Vl) * size,
               (size_t)min_i64(e->d.Vl, e->d.V - i * e->d.Vl) * size);
    return to;
}

/* Loss of rows t .. t+n-1; with a scale also the gradient of the logits. */
static void head_rows(struct env *e, const struct head_weights *w, struct operand nf, int64_t t,
                      int64_t n, dptr loss, const double *scale, const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    struct scratch *s = &e->s;
    dptr labels = dptr_at(mb->labels, t * 4);
    struct operand all = s->stats, losses = mb->token_loss;

    o->linear(e->q, s->logits, w->rows, operand_at(nf, t * e->d.D), e->d.D, w->head, n, w->rows,
              e->d.D, 0);
    o->softmax_stats(e->q, s->stats, s->logits, labels, n, w->rows, w->first, w->real);
    if (e->g->tp > 1) {
        all = s->stats_all;
        gather_rows(e, s->stats, all, n * 3);
    }
    if (operand_given(losses))
        losses = operand_at(losses, t);
    o->softmax_loss(e->q, loss, s->lse, losses, all, e->g->tp, labels, n);
    if (scale)
        o->softmax_grad(e->q, s->dlogits, s->logits, s->lse, labels, *scale, n, w->rows, w->first,
                        w->real);
}

void head_forward(struct env *e, struct operand x, struct operand dx, dptr loss, double scale,
                  const struct micro_batch *mb)
{
    const struct ops *o = e->ops;
    struct scratch *s = &e->s;
    struct head_weights w = weights_head(e, e->weights), dw = weights_head(e, e->grads);
    int64_t D = e->d.D;
    int train = dx.p.p != NULL;
    struct operand nf, dnf;

    o->rmsnorm(e->q, s->nf, D, s->rstd_f, OPERAND_NONE, x, D, OPERAND_NONE, w.norm, e->Ts, 1, D,
               e->d.eps);
    nf = tp_gather(e, s->nf, s->wide);
    if (operand_given(mb->logits)) {
        head_logits(e, &w, nf, mb);
        return;
    }
    for (int64_t t = 0; t < e->T; t += e->head_rows) {
        int64_t n = min_i64(e->head_rows, e->T - t);
        head_rows(e, &w, nf, t, n, loss, train ? &scale : NULL, mb);
        if (!train)
            continue;
        o->linear_grad_input(e->q, operand_at(s->dhead, t * D), D, s->dlogits, w.rows, w.head, n,
                             w.rows, D, 0);
        o->linear_grad_weight(e->q, dw.head, s->dlogits, w.rows, operand_at(nf, t * D), D, n,
                              w.rows, D);
    }
    if (!train)
        return;
    dnf = e->g->tp == 1 ? s->dhead : s->partial;
    tp_scatter(e, s->dhead, dnf);
    o->rmsnorm_grad_weight(e->q, dw.norm, dnf, D, x, D, s->rstd_f, e->Ts, 1, D);
    o->rmsnorm_grad_input(e->q, dx, D, OPERAND_NONE, dnf, D, x, D, s->rstd_f, w.norm, e->Ts, 1, D);
}
