#include "compute/ref.h"

#include <math.h>

void ref_softmax_stats(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                       int64_t T, int64_t rows, int64_t first, int64_t real)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        int64_t label = ref_int32(labels)[t] - first;
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < real; j++) {
            double x = ref_get(logits, t * rows + j);
            top = x > top ? x : top;
        }
        for (int64_t j = 0; j < real; j++) {
            sum += exp(ref_get(logits, t * rows + j) - top);
        }
        ref_put(stats, t * 3, top);
        ref_put(stats, t * 3 + 1, sum);
        ref_put(stats, t * 3 + 2,
                label >= 0 && label < real ? ref_get(logits, t * rows + label) : 0);
    }
}

void ref_softmax_loss(struct queue *q, dptr loss, struct operand lse, struct operand token_loss,
                      struct operand all, int parts, dptr labels, int64_t T)
{
    double total = 0;
    (void)q;
    for (int64_t t = 0; t < T; t++) {
        double top = -INFINITY, sum = 0, logit = 0;
        for (int64_t part = 0; part < parts; part++) {
            double x = ref_get(all, (part * T + t) * 3);
            top = x > top ? x : top;
        }
        for (int64_t part = 0; part < parts; part++) {
            int64_t at = (part * T + t) * 3;
            sum += ref_get(all, at + 1) * exp(ref_get(all, at) - top);
            logit += ref_get(all, at + 2);
        }
        double l = top + log(sum), lost = ref_int32(labels)[t] >= 0 ? l - logit : 0;
        ref_put(lse, t, l);
        total += lost;
        if (token_loss.p.p) {
            ref_put(token_loss, t, lost);
        }
    }
    *ref_double(loss) += total;
}

void ref_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                      struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                      int64_t first, int64_t real)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        int64_t label = ref_int32(labels)[t];
        for (int64_t j = 0; j < rows; j++) {
            int64_t at = t * rows + j;
            double grad = 0;
            if (label >= 0 && j < real) {
                grad = (exp(ref_get(logits, at) - ref_get(lse, t)) - (label == first + j)) * scale;
            }
            ref_put(dlogits, at, grad);
        }
    }
}

void ref_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n, int64_t runs)
{
    REF_ROWS
    for (int64_t i = 0; i < runs; i++) {
        double sum = 0;
        int64_t first = ref_int64(at)[i];
        for (int64_t j = first; j < first + ref_int64(n)[i]; j++) {
            sum += ref_get(g, j) * ref_get(g, j);
        }
        ref_double(sums)[i] = sum;
    }
}

void ref_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
               struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
               int64_t n)
{
    double factor = *ref_double(clip);
    REF_ROWS
    for (int64_t i = 0; i < n; i++) {
        double grad = ref_get(g, i) * factor;
        double first = s->beta1 * ref_get(m, i) + (1 - s->beta1) * grad;
        double second = s->beta2 * ref_get(v, i) + (1 - s->beta2) * grad * grad;
        double weight = ref_get(w, i) * (1 - s->lr * s->decay);
        ref_put(m, i, first);
        ref_put(v, i, second);
        ref_put(w, i,
                weight -
                    s->lr * (first / s->correction1) / (sqrt(second / s->correction2) + s->eps));
        if (copy.p.p) {
            ref_put(copy, i, ref_get(w, i));
        }
    }
}

/* A norm that is not a number stays one. */
void ref_clip_factor(struct queue *q, dptr clip, dptr norm, double max_norm, double unscale)
{
    double factor = max_norm / (*ref_double(norm) + 1e-6);
    (void)q;
    *ref_double(clip) = (max_norm > 0 && !(factor > 1) ? factor : 1) * unscale;
}
