#include "cases.h"

#include <math.h>
#include <string.h>

/* flag 1: dgu is gu */
void case_swiglu(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand gu = scene_real(s, USE_IN, d->T, 2 * d->N, 2 * d->N, 4),
                   h = scene_real(s, USE_OUT, d->T, d->N, d->N, 1);
    if (s->ops) {
        s->ops->swiglu(s->q, h, gu, d->T, d->N);
    }
}

void case_swiglu_grad(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand gu = scene_real(s, d->flag ? USE_INOUT : USE_IN, d->T, 2 * d->N, 2 * d->N, 4);
    struct operand dh = scene_real(s, USE_IN, d->T, d->N, d->N, 1);
    struct operand dgu = d->flag ? gu : scene_real(s, USE_OUT, d->T, 2 * d->N, 2 * d->N, 1);
    if (s->ops) {
        s->ops->swiglu_grad(s->q, dgu, dh, gu, d->T, d->N);
    }
}

/* N rows of which K are real, first = heads; what padding columns hold is a gap of the buffer,
 * hence NaN */
void case_softmax_stats(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand logits = scene_stat(s, USE_IN, d->T, d->K, d->N, 5),
                   stats = scene_stat(s, USE_OUT, d->T, 3, 3, 1);
    dptr labels = case_labels(s, d->T, d->heads + d->N + 3);
    if (s->ops) {
        s->ops->softmax_stats(s->q, stats, logits, labels, d->T, d->N, d->heads, d->K);
    }
}

/* flag 1: with token losses */
void case_softmax_loss(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand all = scene_stat(s, USE_IN, d->B * d->T, 3, 3, 1),
                   lse = scene_stat(s, USE_OUT, 1, d->T, d->T, 1);
    struct operand token = d->flag ? scene_stat(s, USE_OUT, 1, d->T, d->T, 1) : OPERAND_NONE;
    struct operand loss = scene_typed(s, USE_INOUT, F64, 1, 1);
    dptr labels = case_labels(s, d->T, 9);
    struct buffer *b = &s->buffer[0];
    for (int64_t i = 0; !s->ops && i < b->rows; i++) { /* a sum of exponentials is >= 1 */
        scene_poke(b, b->first, i, 1, 1 + fabs(scene_value(b, b->first, i, 1)));
    }
    if (s->ops) {
        s->ops->softmax_loss(s->q, loss.p, lse, token, all, d->B, labels, d->T);
    }
}

/* flag 1: in place where the types allow it */
void case_softmax_grad(struct scene *s)
{
    const struct shape *d = s->d;
    int in_place = d->flag && s->real == s->stat;
    struct operand logits = scene_stat(s, in_place ? USE_INOUT : USE_IN, d->T, d->N, d->N, 2),
                   lse = scene_stat(s, USE_IN, 1, d->T, d->T, 1);
    dptr labels = case_labels(s, d->T, d->heads + d->N + 3);
    for (int64_t i = 0; !s->ops && i < d->T * (d->N - d->K); i++) {
        scene_poke(&s->buffer[0], s->buffer[0].first, i / (d->N - d->K), d->K + i % (d->N - d->K),
                   NAN);
    }
    struct operand out = in_place ? logits : scene_real(s, USE_OUT, d->T, d->N, d->N, 1);
    if (s->ops) {
        s->ops->softmax_grad(s->q, out, logits, lse, labels, 0.125, d->T, d->N, d->heads, d->K);
    }
}

void case_square_sums(struct scene *s)
{
    const struct shape *d = s->d;
    const int64_t first[] = { 0, d->K, 3, d->N - 1, d->K },
                  count[] = { d->K, d->N - d->K, d->K, 1, 0 };
    int64_t *fill_at, *fill_n;
    struct operand g = scene_stat(s, USE_IN, 1, d->N, d->N, 1),
                   sums = scene_typed(s, USE_OUT, F64, COUNT_OF(first), 1);
    dptr at = scene_longs(s, COUNT_OF(first), &fill_at),
         n = scene_longs(s, COUNT_OF(count), &fill_n);
    if (s->ops) {
        s->ops->square_sums(s->q, sums.p, g, at, n, COUNT_OF(first));
    } else {
        memcpy(fill_at, first, sizeof first);
        memcpy(fill_n, count, sizeof count);
    }
}

void case_adamw(struct scene *s)
{
    int64_t n = s->d->N;
    struct adamw_step step = { .beta1 = 0.9,
                               .beta2 = 0.95,
                               .eps = 1e-8,
                               .lr = 1e-3,
                               .decay = s->d->flag ? 0.1 : 0,
                               .correction1 = 1 - 0.9 * 0.9,
                               .correction2 = 1 - 0.95 * 0.95 };
    struct operand w = scene_stat(s, USE_INOUT, 1, n, n, 1),
                   m = scene_stat(s, USE_INOUT, 1, n, n, 0.1);
    struct operand v = scene_stat(s, USE_INOUT, 1, n, n, 0.1),
                   g = scene_stat(s, USE_IN, 1, n, n, 1);
    struct operand clip = scene_typed(s, USE_IN, F64, 1, 0.5);
    struct operand copy = s->d->flag ? scene_real(s, USE_OUT, 1, n, n, 1) : OPERAND_NONE;
    for (int64_t i = 0; !s->ops && i < n; i++) {
        scene_poke(&s->buffer[2], s->buffer[2].first, 0, i,
                   fabs(scene_value(&s->buffer[2], s->buffer[2].first, 0, i)));
    }
    if (s->ops) {
        s->ops->adamw(s->q, w, m, v, g, copy, clip.p, &step, n);
    }
}

/* flag: which max_norm; the norm is 3 */
void case_clip_factor(struct scene *s)
{
    static const double limits[] = { 0, 1e-3, 1e9 };
    struct operand norm = scene_typed(s, USE_IN, F64, 1, 3),
                   clip = scene_typed(s, USE_OUT, F64, 1, 1);
    if (!s->ops) {
        scene_poke(&s->buffer[0], s->buffer[0].first, 0, 0, 3);
    } else {
        s->ops->clip_factor(s->q, clip.p, norm.p, limits[s->d->flag], 0.25);
    }
}
