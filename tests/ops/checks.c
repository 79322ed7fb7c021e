#include "checks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- gradients against central differences ---- */
static const double step = 1e-5;
/* the error of a central difference, step^2 / 6 times the third derivative plus the rounding of the
 * loss over the step, is near 1e-10; relative to the tensor's largest gradient */
static const double difference_limit = 1e-7;

static double loss_of(struct scene *s, scene_case *c, struct queue *q)
{
    const struct buffer *y = &s->buffer[s->y], *dy = &s->buffer[s->dy];
    double sum = 0;
    scene_call(s, c, &ops_ref, q);
    for (int64_t i = 0; i < y->rows * y->cols; i++) {
        sum += scene_value(y, y->base, i / y->cols, i % y->cols) *
               scene_value(dy, dy->base, i / dy->cols, i % dy->cols);
    }
    return sum;
}

static double pair_error(struct scene *s, scene_case *c, struct queue *q, struct pair pair)
{
    struct buffer *x = &s->buffer[pair.x], *dx = &s->buffer[pair.dx];
    double top = 0;
    loss_of(s, c, q);
    double worst = scene_damage(s) < 0 ? 0 : INFINITY;
    char *got = mem_take(dx->bytes);
    memcpy(got, dx->base, dx->bytes);
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        int64_t row = i / x->cols, col = i % x->cols;
        double at = scene_value(x, x->first, row, col), g = scene_value(dx, got, row, col);
        scene_poke(x, x->first, row, col, at + step);
        double up = loss_of(s, c, q);
        scene_poke(x, x->first, row, col, at - step);
        double down = loss_of(s, c, q);
        scene_poke(x, x->first, row, col, at);
        worst = fmax(worst, fabs((up - down) / (2 * step) - g));
        top = fmax(top, fabs(g));
        worst = isfinite(g) ? worst : INFINITY;
    }
    mem_give(got);
    return worst / top;
}

void check_gradients(void)
{
    struct queue *q;
    ops_ref.queue_create(&q, 1, 0, NULL);
    for (int i = 0; i < gradient_nrows; i++) {
        double worst = 0;
        for (int k = 0; k < gradient_rows[i].nshapes; k++) {
            struct scene s;
            scene_make(&s, gradient_rows[i].call, &ops_ref, &gradient_rows[i].shapes[k], F64, 1);
            for (int p = 0; p < s.npairs; p++) {
                double error = pair_error(&s, gradient_rows[i].call, q, s.pair[p]);
                worst = error <= worst ? worst : error;
            }
            scene_free(&s);
        }
        checks_report(worst <= difference_limit, "gradient of %s equals central differences (%.1e)",
                      gradient_rows[i].name, worst);
    }
    ops_ref.queue_free(q);
}

/* ---- the choice ---- */
static enum status choose(const char *backend, const char *isa, enum dtype t,
                          const struct ops **ops)
{
    struct err e = { { 0 } };
    return ops_choose(ops, backend, isa, t, &e);
}

static int is_complete(const struct ops *ops)
{
    size_t first = offsetof(struct ops, queue_create);
    for (size_t at = first; at < sizeof *ops; at += sizeof(void (*)(void))) {
        void (*f)(void);
        memcpy(&f, (const char *)ops + at, sizeof f);
        if (!f) {
            return 0;
        }
    }
    return 1;
}

static void check_choice(void)
{
    const struct ops *ops;
    checks_report(is_complete(&ops_ref), "the reference has every slot");
    checks_report(choose("auto", "auto", F32, &ops) == OK && is_complete(ops) &&
                      !strcmp(ops->name, "cpu"),
                  "auto is cpu for float32, complete");
    printf("# %s\n", ops_describe());
    checks_report(choose("auto", "auto", F64, &ops) == OK && ops == &ops_ref,
                  "auto is reference for float64");
    checks_report(choose("cpu", "auto", F64, &ops) == E_INPUT, "cpu refuses float64");
    checks_report(choose("auto", "auto", BF16, &ops) == OK && !strcmp(ops->name, "cpu") &&
                      choose("auto", "auto", F16, &ops) == OK && !strcmp(ops->name, "cpu"),
                  "auto is cpu for bfloat16 and float16");
    checks_report(choose("reference", "auto", BF16, &ops) == OK && ops == &ops_ref &&
                      choose("reference", "auto", F16, &ops) == OK && ops == &ops_ref,
                  "the reference takes bfloat16 and float16");
    checks_report(choose("auto", "auto", I32, &ops) == E_INPUT, "whole numbers are refused");
    checks_report(choose("cuda", "auto", F32, &ops) == (ops_device() ? OK : E_RESOURCE) &&
                      choose("cuda", "auto", F64, &ops) == (ops_device() ? E_INPUT : E_RESOURCE),
                  "cuda is refused where the build lacks it, and for float64");
    checks_report(choose("gpu", "auto", F32, &ops) == E_INPUT &&
                      choose("cpu", "avx1024", F32, &ops) == E_INPUT,
                  "unknown names are refused");
}

/* ---- attention over two pieces of the keys equals attention over all ---- */
static void merge_pieces(struct scene *s)
{
    const struct shape *d = s->d;
    struct attention_shape a;
    dptr qplace, qstart, kplace, kstart;
    case_attention_shape(s, &a);
    case_places(s, a.Tq, 0, d->N, &qplace, &qstart);
    case_places(s, a.Tk, 0, 0, &kplace, &kstart);
    struct operand q = scene_real(s, USE_IN, d->T, d->heads * d->K, a.ldq, 2),
                   k = scene_real(s, USE_IN, d->T, d->G * d->K, a.ldkv, 1);
    struct operand v = scene_real(s, USE_IN, d->T, d->G * d->K, a.ldkv, 1),
                   whole = scene_real(s, USE_OUT, d->T, d->heads * d->K, a.ldo, 1);
    struct operand pieces = scene_real(s, USE_OUT, d->T, d->heads * d->K, a.ldo, 1),
                   lse = scene_real(s, USE_OUT, d->heads, d->T, d->T, 1);
    struct operand lse2 = scene_real(s, USE_OUT, d->heads, d->T, d->T, 1);
    dptr scratch = scene_scratch(s, s->tested->attention_scratch(&a, s->real, s->threads));
    if (s->ops) {
        s->ops->attention(s->q, whole, lse, q, k, v, qplace, qstart, kplace, &a, 0, scratch);
        for (int64_t i = 2; i >= 0;
             i--) { /* the last piece first: many queries see nothing of it */
            int64_t from = d->T * i / 3, skip = from * a.ldkv;
            struct attention_shape piece = a;
            piece.Tk = (int)(d->T * (i + 1) / 3 - from);
            s->ops->attention(s->q, pieces, lse2, q, operand_at(k, skip), operand_at(v, skip),
                              qplace, qstart, dptr_at(kplace, 4 * from), &piece, i < 2, scratch);
        }
    }
}

static void check_merge(const struct ops *ops, enum dtype t, double limit)
{
    static const struct shape shape = {
        .B = 1, .T = 290, .Tk = 290, .heads = 4, .G = 2, .K = 32, .N = 100
    };
    struct scene s;
    struct queue *q;
    double worst = 0;
    ops->queue_create(&q, 2, 0, NULL);
    scene_make(&s, merge_pieces, ops, &shape, t, 2);
    scene_call(&s, merge_pieces, ops, q);
    for (int i = 7; i < 11; i += 2) { /* o and lse: the whole, then the pieces */
        const struct buffer *b = &s.buffer[i], *c = b + 1;
        for (int64_t j = 0; j < b->rows * b->cols; j++) {
            double gap = fabs(scene_value(b, b->base, j / b->cols, j % b->cols) -
                              scene_value(c, c->base, j / c->cols, j % c->cols));
            worst = gap <= worst ? worst : gap;
        }
    }
    checks_report(worst <= limit && scene_damage(&s) < 0,
                  "%s: three merged pieces of the keys equal the whole (%.1e)", ops->name, worst);
    scene_free(&s);
    ops->queue_free(q);
}

/* ---- AdamW: the formula, and that cutting a run changes no bit ---- */
static void check_adamw(const struct ops *ops)
{
    enum { N = 1003 };
    static float w[N], m[N], v[N], g[N], w2[N], m2[N], v2[N];
    struct adamw_step a = { .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8,
                            .lr = 3e-3,
                            .decay = 0.1,
                            .correction1 = 0.1,
                            .correction2 = 0.05 };
    double clip = 0.25, worst = 0;
    struct queue *q;
    for (int i = 0; i < N; i++) {
        w[i] = w2[i] = sinf((float)i);
        m[i] = m2[i] = 0.1f * cosf((float)i);
        v[i] = v2[i] = 0.01f + 0.01f * sinf(3 * (float)i);
        g[i] = cosf(5 * (float)i);
    }
    ops->queue_create(&q, 2, 0, NULL);
    for (int64_t i = 0, n; i < N; i += n) {
        n = min_i64(1 + i * 7 % 61, N - i);
        ops->adamw(q, (struct operand){ { (char *)(w2 + i) }, F32 },
                   (struct operand){ { (char *)(m2 + i) }, F32 },
                   (struct operand){ { (char *)(v2 + i) }, F32 },
                   (struct operand){ { (char *)(g + i) }, F32 }, OPERAND_NONE,
                   (dptr){ (char *)&clip }, &a, n);
    }
    for (int i = 0; i < N; i++) {
        double d = g[i] * clip, mm = 0.9 * m[i] + 0.1 * d, vv = 0.95 * v[i] + 0.05 * d * d;
        double ww = w[i] * (1 - 3e-4) - 3e-3 * (mm / 0.1) / (sqrt(vv / 0.05) + 1e-8);
        worst = fmax(worst, fmax(fabs(ww - w2[i]), fmax(fabs(mm - m2[i]), fabs(vv - v2[i]))));
    }
    checks_report(worst < 3e-7, "%s: adamw equals the formula (%.1e)", ops->name, worst);
    ops->adamw(q, (struct operand){ { (char *)w }, F32 }, (struct operand){ { (char *)m }, F32 },
               (struct operand){ { (char *)v }, F32 }, (struct operand){ { (char *)g }, F32 },
               OPERAND_NONE, (dptr){ (char *)&clip }, &a, N);
    checks_report(!memcmp(w, w2, sizeof w) && !memcmp(m, m2, sizeof m) && !memcmp(v, v2, sizeof v),
                  "%s: adamw in pieces has the same bits", ops->name);
    ops->queue_free(q);
}

/* ---- the reference's bits do not depend on the number of threads ---- */
static int bits_differ(const struct op_row *row, const struct shape *shape, struct queue *one,
                       struct queue *three)
{
    struct scene a, b;
    int differ = 0;
    scene_make(&a, row->call, &ops_ref, shape, F32, 3);
    scene_make(&b, row->call, &ops_ref, shape, F32, 3);
    scene_call(&a, row->call, &ops_ref, one);
    scene_call(&b, row->call, &ops_ref, three);
    for (int i = 0; i < a.n; i++) {
        differ |= a.buffer[i].use != USE_SCRATCH &&
                  memcmp(a.buffer[i].base, b.buffer[i].base, a.buffer[i].bytes);
    }
    scene_free(&a);
    scene_free(&b);
    return differ;
}

static void check_threads(void)
{
    struct queue *one, *three;
    int differ = 0;
    ops_ref.queue_create(&one, 1, 0, NULL);
    ops_ref.queue_create(&three, 3, 0, NULL);
    for (int i = 0; i < op_nrows; i++) {
        for (int k = 0; k < op_rows[i].nshapes; k++) {
            differ += bits_differ(&op_rows[i], &op_rows[i].shapes[k], one, three);
        }
    }
    checks_report(differ == 0, "the reference has the same bits with one and three threads");
    ops_ref.queue_free(one);
    ops_ref.queue_free(three);
}

/* ---- exp: softmax_grad of a row whose log-sum is 0 and whose label is elsewhere ---- */
static void check_exp(const struct ops *ops, const char *isa)
{
    enum { N = 200001 };
    static float x[N], y[N];
    float zero = 0;
    int32_t label = N;
    double worst = 0, worst_at = 0;
    struct queue *q;
    for (int i = 0; i < N; i++) {
        x[i] = y[i] = -87.3f + 176.0f * (float)i / (N - 1);
    }
    x[0] = y[0] = -INFINITY;
    x[1] = y[1] = 1e30f;
    x[2] = y[2] = -110;
    ops->queue_create(&q, 1, 0, NULL);
    ops->softmax_grad(
        q, (struct operand){ { (char *)y }, F32 }, (struct operand){ { (char *)y }, F32 },
        (struct operand){ { (char *)&zero }, F32 }, (dptr){ (char *)&label }, 1, 1, N, 0, N);
    for (int i = 3; i < N; i++) {
        double want = exp((double)x[i]), error = fabs(y[i] - want) / want / 1.1920929e-7;
        worst_at = error > worst ? x[i] : worst_at;
        worst = error <= worst ? worst : error;
    }
    checks_report(worst < 1.5 && y[0] == 0 && isinf(y[1]) && y[2] == 0,
                  "exp, %s: within %.2f units of 2^-23 (at %g), with both ends", isa, worst,
                  worst_at);
    ops->queue_free(q);
}

/* ---- two-byte types: all their values, and floats at, below and above every tie between two ----
 */
static int loads_differ(struct queue *q, const struct ops *ops, enum dtype t)
{
    enum { N = 65536 };
    static uint16_t h[N];
    static float got[N], want[N];
    int differ = 0;
    for (int i = 0; i < N; i++) {
        h[i] = (uint16_t)i;
    }
    dtype_convert(want, F32, h, t, N);
    ops->convert(q, (struct operand){ { (char *)got }, F32 }, (struct operand){ { (char *)h }, t },
                 N);
    for (int i = 0; i < N; i++) {
        differ += isnan(want[i]) ? !isnan(got[i]) : memcmp(&want[i], &got[i], sizeof *got) != 0;
    }
    return differ;
}

static int stores_differ(struct queue *q, const struct ops *ops, enum dtype t)
{
    enum { EACH = 6, N = EACH * 65536, MOST = 67 };
    static float x[N];
    static uint16_t got[N], want[N];
    for (int i = 0; i < 65536; i++) {
        uint16_t pair[2] = { (uint16_t)i, (uint16_t)(i + 1) };
        float at[2], *to = x + EACH * (size_t)i;
        dtype_convert(at, F32, pair, t, 2);
        to[0] = at[0];
        to[1] = nextafterf(at[0], 2 * at[0]);
        to[2] = at[0] / 2 + at[1] / 2;
        to[3] = nextafterf(to[2], 0);
        to[4] = nextafterf(to[2], INFINITY);
        to[5] = ldexpf(at[0], -20); /* often subnormal */
    }
    dtype_convert(want, t, x, F32, N);
    for (int64_t i = 0, n = 1; i < N; i += n, n = n % MOST + 1) { /* runs of every length */
        n = min_i64(n, N - i);
        ops->convert(q, (struct operand){ { (char *)(got + i) }, t },
                     (struct operand){ { (char *)(x + i) }, F32 }, n);
    }
    int differ = 0;
    for (int i = 0; i < N; i++) {
        differ += got[i] != want[i];
    }
    return differ;
}

void check_each(const struct ops *ops, const char *isa, enum dtype t)
{
    struct queue *q;
    if (t == F32) {
        check_exp(ops, isa);
        return;
    }
    ops->queue_create(&q, 1, 0, NULL);
    int loads = loads_differ(q, ops, t), stores = stores_differ(q, ops, t);
    checks_report(loads == 0 && stores == 0,
                  "%s, %s: conversions from and to float32 (%d, %d wrong)", dtype_name(t), isa,
                  loads, stores);
    ops->queue_free(q);
}

static void check_peak(const struct ops *ops, enum dtype t)
{
    struct queue *q;
    ops->queue_create(&q, 1, 0, NULL);
    double peak = ops->measure_peak(q, t, 0.02);
    checks_report(peak > 1e7 && peak < 1e14, "%s: measured peak %.2e FLOP/s", ops->name, peak);
    ops->queue_free(q);
}

void check_others(void)
{
    const struct ops *cpu;
    check_choice();
    choose("cpu", "auto", F32, &cpu);
    check_merge(&ops_ref, F64, 1e-13); /* a few roundings of F64, values near 1 */
    check_merge(cpu, F32, 4e-6);       /* a few roundings of F32, lse up to 10 */
    check_adamw(&ops_ref);
    check_adamw(cpu);
    check_threads();
    check_peak(&ops_ref, F32);
    check_peak(&ops_ref, F64);
    check_peak(cpu, F32);
    check_peak(cpu, BF16);
}
