/* What moves bytes rather than multiplies: GB/s beside those of a copy made in the same run. */
#include "tests/gpu/bench.h"

#include "base/rng.h"

#include <stdio.h>

enum { RUN = 4096 }; /* elements of a partial sum of the norm */

/* The operands of a block of an 8B-shaped model, its head and its optimiser; BF16 but for what
 * ops.h wants in F32. */
struct scene {
    int64_t T, D, F, V, R, n; /* tokens, hidden, ffn, vocabulary, rows of logits, parameters */
    int H, G, K;
    struct operand x, y, z, gu, h, table, weight, rstd, dw;
    struct operand logits, dlogits, lse, stats, master, m, v, g, copy;
    dptr ids, labels, position, clip, at, lengths, sums;
};

#define CALL(name) static void name(struct bench *b, const void *with)
#define SCENE                     \
    const struct scene *s = with; \
    const struct ops *o = b->ops; \
    struct queue *q = b->q

CALL(copy)
{
    SCENE;
    o->copy(q, s->m.p, s->v.p, (size_t)s->n * 4);
}
CALL(add)
{
    SCENE;
    o->add(q, s->y, s->x, s->z, s->T * s->D);
}
CALL(convert)
{
    SCENE;
    o->convert(q, s->copy, s->g, s->n);
}
CALL(norm)
{
    SCENE;
    o->rmsnorm(q, s->y, s->D, s->rstd, s->h, s->x, s->D, s->z, s->weight, s->T, 1, s->D, 1e-5);
}
CALL(norm_input)
{
    SCENE;
    o->rmsnorm_grad_input(q, s->h, s->D, s->z, s->y, s->D, s->x, s->D, s->rstd, s->weight, s->T, 1,
                          s->D);
}
CALL(norm_weight)
{
    SCENE;
    o->rmsnorm_grad_weight(q, s->dw, s->y, s->D, s->x, s->D, s->rstd, s->T, 1, s->D);
}
CALL(rope)
{
    SCENE;
    o->rope(q, s->gu, (s->H + 2 * s->G) * s->K, s->table, s->position, s->T, s->H + s->G, s->K, 1);
}
CALL(swiglu)
{
    SCENE;
    o->swiglu(q, s->h, s->gu, s->T, s->F);
}
CALL(swiglu_grad)
{
    SCENE;
    o->swiglu_grad(q, s->gu, s->h, s->gu, s->T, s->F);
}
CALL(embed)
{
    SCENE;
    o->embed(q, s->y, s->copy, s->ids, 0, s->V, s->T, s->D);
}
CALL(embed_grad)
{
    SCENE;
    o->embed_grad(q, s->g, s->x, s->ids, 0, s->V, s->T, s->D);
}
CALL(stats)
{
    SCENE;
    o->softmax_stats(q, s->stats, s->logits, s->labels, s->R, s->V, 0, s->V);
}
CALL(loss_grad)
{
    SCENE;
    o->softmax_grad(q, s->dlogits, s->logits, s->lse, s->labels, 1e-3, s->R, s->V, 0, s->V);
}
CALL(squares)
{
    SCENE;
    o->square_sums(q, s->sums, s->g, s->at, s->lengths, s->n / RUN);
}
CALL(adamw)
{
    static const struct adamw_step step = { 0.9, 0.95, 1e-8, 1e-4, 0.1, 0.1, 0.05 };
    SCENE;
    o->adamw(q, s->master, s->m, s->v, s->g, s->copy, s->clip, &step, s->n);
}

static dptr counted(struct bench *b, int64_t n, int64_t below, int what)
{
    int32_t *x = mem_take((size_t)n * sizeof *x);
    dptr p;

    for (int64_t i = 0; i < n; i++) {
        x[i] = (int32_t)(what ? (int64_t)(rng_u64(2, (uint64_t)what, (uint64_t)i) % (uint64_t)below)
                              : i % below);
    }
    p = bench_ints(b, x, n);
    mem_give(x);
    return p;
}

static dptr constant(struct bench *b, const void *value)
{
    dptr p = bench_take(b, 1, F64).p;

    b->ops->upload(b->q, p, value, 8);
    b->ops->sync(b->q);
    return p;
}

/* One set of operands after the other, so that what fits a device of 40 GB is enough. */
static void make_block(struct bench *b, struct scene *s)
{
    s->x = bench_numbers(b, s->T * s->D, BF16, 1);
    s->y = bench_numbers(b, s->T * s->D, BF16, 1);
    s->z = bench_numbers(b, s->T * s->D, BF16, 1);
    s->gu = bench_numbers(b, s->T * 2 * s->F, BF16, 1);
    s->h = bench_numbers(b, s->T * s->F, BF16, 1);
    s->weight = bench_numbers(b, s->D, BF16, 1);
    s->table = bench_numbers(b, s->T * s->K, F32, 0.5);
    s->rstd = bench_take(b, s->T, F32);
    s->dw = bench_take(b, s->D, F32);
    s->position = counted(b, s->T, s->T, 0);
}

static void make_runs(struct bench *b, struct scene *s)
{
    int64_t n = s->n / RUN;
    size_t bytes = (size_t)n * sizeof(int64_t);
    int64_t *at = mem_take(bytes), *lengths = mem_take(bytes);

    for (int64_t i = 0; i < n; i++) {
        at[i] = i * RUN;
        lengths[i] = RUN;
    }
    s->at = bench_take(b, n, I64).p;
    s->lengths = bench_take(b, n, I64).p;
    s->sums = bench_take(b, n, F64).p;
    b->ops->upload(b->q, s->at, at, bytes);
    b->ops->upload(b->q, s->lengths, lengths, bytes);
    b->ops->sync(b->q);
    mem_give(at);
    mem_give(lengths);
}

static void make_ends(struct bench *b, struct scene *s)
{
    double one = 1;

    s->x = bench_numbers(b, s->T * s->D, BF16, 1);
    s->y = bench_take(b, s->T * s->D, BF16);
    s->logits = bench_numbers(b, s->R * s->V, F32, 1);
    s->dlogits = bench_take(b, s->R * s->V, BF16);
    s->lse = bench_numbers(b, s->R, F32, 1);
    s->stats = bench_take(b, 3 * s->R, F32);
    s->master = bench_numbers(b, s->n, F32, 0.02);
    s->m = bench_take(b, s->n, F32);
    s->v = bench_take(b, s->n, F32);
    s->g = bench_numbers(b, s->n, F32, 1e-3);
    s->copy = bench_numbers(b, s->n, BF16, 0.02);
    s->ids = counted(b, s->T, s->V, 1);
    s->labels = counted(b, s->R, s->V, 2);
    s->clip = constant(b, &one);
    make_runs(b, s);
}

static void row(struct bench *b, const struct scene *s, const char *name, bench_call *call,
                double bytes)
{
    char item[64];
    double rate = bytes / bench_time(b, call, s);

    snprintf(item, sizeof item, "operation, %s", name);
    if (call == copy) {
        b->copy = rate;
        bench_row(b, item, 0, 0, NULL, "%.4g GB/s", 1e-9 * rate);
    } else {
        bench_row(b, item, 0, 0, NULL, "%.4g GB/s, %.0f %% of a copy", 1e-9 * rate,
                  100 * rate / b->copy);
    }
}

void bench_rows(struct bench *b)
{
    struct scene s = b->tiny ? (struct scene){ .T = 6,
                                               .D = 16,
                                               .F = 24,
                                               .V = 40,
                                               .R = 4,
                                               .H = 2,
                                               .G = 1,
                                               .K = 8,
                                               .n = 2 * RUN }
                             : (struct scene){ .T = 8192,
                                               .D = 4096,
                                               .F = 14336,
                                               .V = 128256,
                                               .R = 2048,
                                               .H = 32,
                                               .G = 8,
                                               .K = 128,
                                               .n = (int64_t)128256 * 4096 };
    double t = (double)s.T, td = t * (double)s.D, tf = t * (double)s.F, n = (double)s.n;
    double rv = (double)s.R * (double)s.V;

    make_ends(b, &s);
    row(b, &s, "copy", copy, 8 * n);
    row(b, &s, "float32 to bfloat16", convert, 6 * n);
    row(b, &s, "embedding", embed, 4 * td);
    row(b, &s, "embedding gradient", embed_grad, 10 * td);
    row(b, &s, "softmax statistics", stats, 4 * rv);
    row(b, &s, "softmax gradient", loss_grad, 6 * rv);
    row(b, &s, "sum of squares", squares, 4 * n);
    row(b, &s, "AdamW", adamw, 30 * n);
    bench_drop(b);
    make_block(b, &s);
    row(b, &s, "add", add, 6 * td);
    row(b, &s, "RMSNorm with residual", norm, 8 * td);
    row(b, &s, "RMSNorm input gradient", norm_input, 8 * td);
    row(b, &s, "RMSNorm weight gradient", norm_weight, 4 * td);
    row(b, &s, "RoPE", rope, 4 * t * (s.H + s.G) * s.K);
    row(b, &s, "SwiGLU", swiglu, 6 * tf);
    row(b, &s, "SwiGLU gradient", swiglu_grad, 10 * tf);
    bench_drop(b);
}
