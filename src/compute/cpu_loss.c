#include "compute/cpu.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 4096 /* floats of a flat run that stay with one thread */
};

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

/* Elements at .. at+n-1 of a row: dlogits from logits; `used` of the row count. */
static void grad_piece(struct operand dlogits, const float *logits, float lse, float scale,
                       int64_t here, int64_t at, int64_t n, int64_t used)
{
    float piece[CPU_PIECE], *x = cpu_place(dlogits, at, piece);
    int64_t live = max_i64(0, min_i64(n, used - at));

    memmove(x, logits + at, (size_t)live * sizeof *x);
    cpu_kernels()->exp_scale(x, lse, scale, live);
    memset(x + live, 0, (size_t)(n - live) * sizeof *x);
    if (here >= at && here < at + live) {
        x[here - at] -= scale;
    }
    cpu_put(dlogits, at, x, n);
}

void cpu_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                      struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                      int64_t first, int64_t real)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            int64_t label = cpu_int32(labels)[t];
            CPU_EACH_PIECE(at, here, rows)
            {
                grad_piece(operand_at(dlogits, t * rows), cpu_floats(logits) + t * rows,
                           cpu_floats(lse)[t], (float)scale, label - first, at, here,
                           label >= 0 ? real : 0);
            }
        }
    }
}

void cpu_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n, int64_t runs)
{
    const int64_t *first = (const int64_t *)(const void *)at.p;
    const int64_t *count = (const int64_t *)(const void *)n.p;
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, runs, 1);
        for (int64_t i = s.first; i < s.first + s.count; i++) {
            ((double *)(void *)sums.p)[i] = k->square_sum(cpu_floats(g) + first[i], count[i]);
        }
    }
}

void cpu_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
               struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
               int64_t n)
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
        for (int64_t i = r.first; i < r.first + r.count; i += GRAIN) {
            int64_t here = min_i64(GRAIN, r.first + r.count - i);
            k->adamw(cpu_floats(w) + i, cpu_floats(m) + i, cpu_floats(v) + i, cpu_floats(g) + i, &a,
                     here);
            if (copy.p.p) {
                cpu_store(copy, i, cpu_floats(w) + i, here);
            }
        }
    }
}
