#include "compute/cpu.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 4096 }; /* floats of a flat run that stay with one thread */

void cpu_softmax_stats(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                       int64_t T, int64_t rows, int64_t first, int64_t real)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            const float *x = cpu_floats(logits) + t * rows;
            float *out = cpu_floats(stats) + t * 3;
            int64_t label = cpu_int32(labels)[t] - first;
            out[0] = k->largest(x, real);
            out[1] = k->exp_sum(x, out[0], real);
            out[2] = label >= 0 && label < real ? x[label] : 0;
        }
    }
}

void cpu_softmax_grad(struct queue *q, struct operand logits, struct operand lse, dptr labels,
                      double scale, int64_t T, int64_t rows, int64_t first, int64_t real)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            float *x = cpu_floats(logits) + t * rows;
            int64_t label = cpu_int32(labels)[t], here = label - first;
            int64_t used = label >= 0 ? real : 0;
            k->exp_scale(x, cpu_floats(lse)[t], (float)scale, used);
            memset(x + used, 0, (size_t)(rows - used) * sizeof *x);
            if (here >= 0 && here < used) {
                x[here] -= (float)scale;
            }
        }
    }
}

void cpu_square_sums(struct queue *q, dptr sums, struct operand g, const int64_t *at,
                     const int64_t *n, int64_t runs)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, runs, 1);
        for (int64_t i = s.first; i < s.first + s.count; i++) {
            ((double *)(void *)sums.p)[i] = k->square_sum(cpu_floats(g) + at[i], n[i]);
        }
    }
}

void cpu_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
               struct operand g, dptr clip, const struct adamw_step *s, int64_t n)
{
    const struct cpu_kernels *k = cpu_kernels();
    struct cpu_adamw a = {
        .clip = (float)*(const double *)(const void *)clip.p,
        .beta1 = (float)s->beta1,
        .rest1 = (float)(1 - s->beta1),
        .beta2 = (float)s->beta2,
        .rest2 = (float)(1 - s->beta2),
        .decay = (float)(s->lr * s->decay),
        .rate = (float)(s->lr / s->correction1),
        .inverse2 = (float)(1 / s->correction2),
        .eps = (float)s->eps,
    };
    QUEUE_EACH_PART(part)
    {
        struct queue_share r = queue_share(q, part, n, GRAIN);
        k->adamw(cpu_floats(w) + r.first, cpu_floats(m) + r.first, cpu_floats(v) + r.first,
                 cpu_floats(g) + r.first, &a, r.count);
    }
}
