/* Attention by own kernels and by cuDNN: how far apart, how fast. */
#include "tests/gpu/bench.h"

#include "cuda/attention_choice.h"

#include <math.h>
#include <stdio.h>

enum { COMPARED = 1 << 20 };
static const double PUBLISHED_FOR = 989.4e12; /* FLOP/s of the H200 that the figures are of */

/* b sequences of s tokens, h query and hk key heads of d, causal. Published, TFLOP/s forward and
 * backward: cuDNN 9.19 on an H200, cudnn-frontend's sdpa_benchmark_training, llama3.1, 2026-02-27.
 */
struct shape {
    int b, h, hk, s, d;
    double forward, backward;
    int quick;
};

static const struct shape shapes[] = {
    { 1, 64, 8, 2048, 128, 484, 370, 0 },  { 1, 64, 8, 4096, 128, 591, 474, 1 },
    { 1, 64, 8, 8192, 128, 644, 541, 0 },  { 1, 64, 8, 16384, 128, 673, 579, 0 },
    { 1, 64, 8, 32768, 128, 688, 581, 0 }, { 1, 32, 8, 4096, 64, 0, 0, 1 },
    { 4, 12, 12, 4096, 64, 0, 0, 0 },
};
static const struct shape tiny_shapes[] = { { 2, 4, 2, 48, 64, 0, 0, 1 } };

struct call {
    struct attention_shape s;
    struct operand qkv, dqkv, o, dout, lse, delta;
    dptr place, start, scratch;
};

static struct operand part(const struct call *c, struct operand rows, int heads)
{
    return operand_at(rows, (int64_t)heads * c->s.K);
}

static void forward(struct bench *b, const void *with)
{
    const struct call *c = with;
    int H = c->s.H, G = c->s.G;

    b->ops->attention(b->q, c->o, c->lse, c->qkv, part(c, c->qkv, H), part(c, c->qkv, H + G),
                      c->place, c->start, c->place, &c->s, 0, c->scratch);
}

static void backward(struct bench *b, const void *with)
{
    const struct call *c = with;
    int H = c->s.H, G = c->s.G;

    b->ops->attention_delta(b->q, c->delta, c->o, c->dout, &c->s);
    b->ops->attention_grad(b->q, c->dqkv, part(c, c->dqkv, H), part(c, c->dqkv, H + G), c->dout,
                           c->qkv, part(c, c->qkv, H), part(c, c->qkv, H + G), c->lse, c->delta,
                           c->place, c->start, c->place, &c->s, 0, c->scratch);
}

static void make(struct bench *b, struct call *c, const struct shape *x)
{
    int64_t tokens = (int64_t)x->b * x->s, ld = (int64_t)(x->h + 2 * x->hk) * x->d;
    int32_t *place = mem_take((size_t)tokens * sizeof *place);

    c->s = (struct attention_shape){ .B = x->b,
                                     .Tq = x->s,
                                     .Tk = x->s,
                                     .H = x->h,
                                     .G = x->hk,
                                     .K = x->d,
                                     .ldq = ld,
                                     .ldkv = ld,
                                     .ldo = (int64_t)x->h * x->d,
                                     .scale = 1 / sqrt(x->d) };
    c->qkv = bench_numbers(b, tokens * ld, BF16, 1);
    c->dqkv = bench_take(b, tokens * ld, BF16);
    c->o = bench_take(b, tokens * c->s.ldo, BF16);
    c->dout = bench_numbers(b, tokens * c->s.ldo, BF16, 1);
    c->lse = bench_take(b, tokens * x->h, F32);
    c->delta = bench_take(b, tokens * x->h, F32);
    for (int64_t i = 0; i < tokens; i++) {
        place[i] = (int32_t)(i % x->s);
    }
    c->place = bench_ints(b, place, tokens);
    c->start = bench_take(b, tokens, I32).p; /* zeroed */
    mem_give(place);
}

struct result {
    double forward, backward; /* seconds */
    float *o, *dqkv;          /* [COMPARED] at most */
    int64_t n_o, n_dqkv;
};

/* "own" or "cudnn"; not OK: cuDNN has no plan. */
static enum status measure(struct bench *b, struct call *c, const char *word, struct result *r,
                           struct err *e)
{
    struct attention_choice choice = { .word = word, .whole = 1 };
    int64_t tokens = (int64_t)c->s.B * c->s.Tq, o = tokens * c->s.ldo, dqkv = tokens * c->s.ldq;
    enum status st = choice_attention_choose(b->q, &choice, &c->s, BF16, e);

    if (st == OK) {
        size_t bytes = b->ops->attention_scratch(&c->s, BF16, 1);
        c->scratch = bench_take(b, (int64_t)(bytes + 1), U8).p;
        r->forward = bench_time(b, forward, c);
        r->backward = bench_time(b, backward, c);
        r->n_o = o < COMPARED ? o : COMPARED;
        r->n_dqkv = dqkv < COMPARED ? dqkv : COMPARED;
        bench_fetch(b, r->o, c->o, r->n_o);
        bench_fetch(b, r->dqkv, c->dqkv, r->n_dqkv);
    }
    choice_forget(b->q);
    return st;
}

static void rate(struct bench *b, const struct shape *x, const char *direction, const char *by,
                 double seconds, double published, int judged)
{
    double flop = 2.0 * x->b * x->h * (double)x->s * x->s * x->d; /* causal half, two products */
    double share;
    char item[96];

    flop *= *direction == 'b' ? 2.5 : 1;
    share = published > 0 ? 1e-12 * flop / seconds / published : 0;
    judged = judged && published > 0 && b->peak >= PUBLISHED_FOR;
    snprintf(item, sizeof item, "attention %s, %d x %d/%d heads of %d, %d tokens, %s", direction,
             x->b, x->h, x->hk, x->d, x->s, by);
    if (published > 0) {
        bench_row(b, item, share, judged ? 0.9 : 0, "90 % of cuDNN on an H200",
                  "%.4g TFLOP/s, %.0f %% of the %.0f published", 1e-12 * flop / seconds,
                  100 * share, published);
    } else {
        bench_row(b, item, 0, 0, NULL, "%.4g TFLOP/s", 1e-12 * flop / seconds);
    }
}

/* The goal is for what a run would take: cuDNN where it is the faster. */
static void compare(struct bench *b, const struct shape *x, const struct result *own,
                    const struct result *dnn)
{
    double o = bench_difference(own->o, dnn->o, own->n_o);
    double dqkv = bench_difference(own->dqkv, dnn->dqkv, own->n_dqkv), worst = o > dqkv ? o : dqkv;
    int better = dnn->forward + dnn->backward < own->forward + own->backward;
    char item[96];

    snprintf(item, sizeof item, "attention, %d x %d/%d heads of %d, %d tokens, own and cuDNN", x->b,
             x->h, x->hk, x->d, x->s);
    bench_row(b, item, worst <= 1e-2, 1, "1e-2 rms", "output differs by %.1e, gradients by %.1e", o,
              dqkv);
    rate(b, x, "forward", "own", own->forward, x->forward, !better);
    rate(b, x, "backward", "own", own->backward, x->backward, !better);
    rate(b, x, "forward", "cuDNN", dnn->forward, x->forward, better);
    rate(b, x, "backward", "cuDNN", dnn->backward, x->backward, better);
}

static void one(struct bench *b, const struct shape *x)
{
    size_t bytes = COMPARED * sizeof(float);
    struct result own = { .o = mem_take(bytes), .dqkv = mem_take(bytes) }, dnn = own;
    struct call c;
    struct err e = { "" };
    char item[96];

    dnn.o = mem_take(bytes);
    dnn.dqkv = mem_take(bytes);
    make(b, &c, x);
    if (measure(b, &c, "own", &own, &e) != OK) {
        die(E_BUG, "%s", e.text);
    }
    if (measure(b, &c, "cudnn", &dnn, &e) == OK) {
        compare(b, x, &own, &dnn);
    } else {
        snprintf(item, sizeof item, "attention, %d x %d/%d heads of %d, %d tokens, own and cuDNN",
                 x->b, x->h, x->hk, x->d, x->s);
        bench_skip(item, e.text);
        rate(b, x, "forward", "own", own.forward, x->forward, 1);
        rate(b, x, "backward", "own", own.backward, x->backward, 1);
    }
    mem_give(own.o);
    mem_give(own.dqkv);
    mem_give(dnn.o);
    mem_give(dnn.dqkv);
    bench_drop(b);
}

void bench_attention(struct bench *b)
{
    const struct shape *x = b->tiny ? tiny_shapes : shapes;
    int n = b->tiny ? COUNT_OF(tiny_shapes) : COUNT_OF(shapes);

    for (int i = 0; i < n; i++) {
        if (!b->quick || x[i].quick) {
            one(b, &x[i]);
        }
    }
}
