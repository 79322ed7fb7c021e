#include "tests/gpu/lt.h"

#include "cuda/host.h"

#include <stdio.h>

enum { COMPARED = 1 << 18 }; /* elements of the two results */

enum kind { FORWARD, GRAD_INPUT, GRAD_WEIGHT, KINDS };
static const char *const kind_name[KINDS] = { "forward", "input gradient", "weight gradient" };

/* W [N, K] on T tokens. */
struct shape {
    const char *name;
    int64_t T, N, K;
    int quick;
};

static const struct shape shapes[] = {
    { "1B qkv", 4096, 3072, 2048, 0 },   { "1B gate and up", 4096, 16384, 2048, 1 },
    { "1B down", 4096, 2048, 8192, 0 },  { "8B qkv", 4096, 6144, 4096, 0 },
    { "8B out", 4096, 4096, 4096, 0 },   { "8B gate and up", 4096, 28672, 4096, 1 },
    { "8B down", 4096, 4096, 14336, 0 }, { "8B head", 2048, 128256, 4096, 0 },
    { "square", 8192, 8192, 8192, 1 },
};
static const struct shape tiny_shapes[] = { { "tiny", 24, 48, 32, 1 } };

struct call {
    enum kind kind;
    struct shape s;
    struct operand x, w, y, dw; /* y is dy of the gradients, x is dx */
};

static void run(struct bench *b, const void *with)
{
    const struct call *c = with;
    const struct shape *s = &c->s;

    if (c->kind == FORWARD) {
        b->ops->linear(b->q, c->y, s->N, c->x, s->K, c->w, s->T, s->N, s->K, 0);
    } else if (c->kind == GRAD_INPUT) {
        b->ops->linear_grad_input(b->q, c->x, s->K, c->y, s->N, c->w, s->T, s->N, s->K, 0);
    } else {
        b->ops->linear_grad_weight(b->q, c->dw, c->y, s->N, c->x, s->K, s->T, s->N, s->K);
    }
}

/* As cuda/products.c asks cuBLAS. */
static struct lt_product product_of(const struct call *c)
{
    int64_t T = c->s.T, N = c->s.N, K = c->s.K;

    switch (c->kind) {
    case FORWARD:
        return (struct lt_product){ c->w, c->x, c->y, K, K, N, N, T, K, 1, 0, 0 };
    case GRAD_INPUT:
        return (struct lt_product){ c->w, c->y, c->x, K, N, K, K, T, N, 0, 0, 0 };
    default:
        return (struct lt_product){ c->x, c->y, c->dw, K, N, K, K, N, T, 0, 1, 1 };
    }
}

/* The result of one own call from zero against what C holds. */
static double difference(struct bench *b, const struct call *c, const struct lt_product *p)
{
    int64_t n = p->m * p->n < COMPARED ? p->m * p->n : COMPARED;
    float *theirs = mem_take((size_t)n * sizeof *theirs),
          *ours = mem_take((size_t)n * sizeof *ours);
    double d;

    bench_fetch(b, theirs, p->c, n);
    b->ops->zero(b->q, p->c.p, (size_t)(p->m * p->n) * dtype_size(p->c.t));
    run(b, c);
    bench_fetch(b, ours, p->c, n);
    d = bench_difference(ours, theirs, n);
    mem_give(theirs);
    mem_give(ours);
    return d;
}

static void measure(struct bench *b, const struct call *c)
{
    struct lt_product p = product_of(c);
    double flop = 2.0 * (double)c->s.T * (double)c->s.N * (double)c->s.K, own, best = 0, off;
    char item[96];
    struct err e = { "" };
    int tried = 0;

    snprintf(item, sizeof item, "product, %s, %s", c->s.name, kind_name[c->kind]);
    own = bench_time(b, run, c);
    if (lt_best(b, &p, &best, &tried, &e) != OK) {
        bench_row(b, item, 0, 0, NULL, "%.4g TFLOP/s, %.1f %% of nominal; %s", 1e-12 * flop / own,
                  100 * flop / own / b->peak, e.text);
        return;
    }
    off = difference(b, c, &p);
    bench_row(b, item, off < 1e-2 ? best / own : 0, 0.9, "90 % of cublasLt's best",
              "%.4g TFLOP/s, %.1f %% of nominal, %.1f %% of the best of %d; results differ by %.1e",
              1e-12 * flop / own, 100 * flop / own / b->peak, 100 * best / own, tried, off);
}

void bench_products(struct bench *b)
{
    const struct shape *s = b->tiny ? tiny_shapes : shapes;
    int n = b->tiny ? COUNT_OF(tiny_shapes) : COUNT_OF(shapes);

    for (int i = 0; i < n; i++) {
        struct call c = { .s = s[i] };
        if (b->quick && !s[i].quick) {
            continue;
        }
        c.x = bench_numbers(b, s[i].T * s[i].K, BF16, 1);
        c.w = bench_numbers(b, s[i].N * s[i].K, BF16, 0.02);
        c.y = bench_numbers(b, s[i].T * s[i].N, BF16, 1);
        c.dw = bench_take(b, s[i].N * s[i].K, F32);
        for (int k = KINDS - 1; k >= 0; k--) { /* forward last: it writes what the others read */
            c.kind = (enum kind)k;
            measure(b, &c);
        }
        bench_drop(b);
    }
}
