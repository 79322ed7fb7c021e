#include "compute/cpu.h"

#include <math.h>
#include <string.h>

/* Attention by strips of queries: the scores of a strip with all keys that any of its queries sees
 * are one product, then come row loops, then one product (forward) or three (backward). Keys are
 * consecutive, so a query sees one run of them. */
enum { STRIP = 64, ALIGN = 16 };

struct view {
    const struct attention_shape *s;
    const struct cpu_kernels *kernels;
    const float *q, *k, *v, *dout;
    const int32_t *qplace, *qstart, *kplace;
    int64_t ld; /* row stride of a strip's scores */
};

/* Keys first .. end-1 of the sequence's; none if end <= first. */
struct run {
    int64_t first, end;
};

static int64_t stride_of(const struct attention_shape *s)
{
    return ceil_div(s->Tk, ALIGN) * ALIGN + ALIGN;
}

/* Two strips of scores, or one and one of outputs. */
static int64_t strips_floats(const struct attention_shape *s)
{
    return STRIP * (stride_of(s) + max_i64(stride_of(s), ceil_div(s->K, ALIGN) * ALIGN));
}

/* Per thread: those, and the gradients of one head's keys and values. */
static int64_t scratch_floats(const struct attention_shape *s)
{
    return strips_floats(s) + ceil_div(2 * (int64_t)s->Tk * s->K, ALIGN) * ALIGN;
}

size_t cpu_attention_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    (void)t;
    return (size_t)threads * (size_t)scratch_floats(s) * sizeof(float);
}

static struct run keys_of_query(const struct view *a, int64_t sequence, int64_t query)
{
    int64_t origin = a->kplace[sequence * a->s->Tk];
    return (struct run){ max_i64(0, a->qstart[query] - origin),
                         min_i64(a->s->Tk, a->qplace[query] - origin + 1) };
}

static struct run keys_of_strip(const struct view *a, int64_t sequence, int64_t query, int64_t n)
{
    struct run all = { a->s->Tk, 0 };
    for (int64_t i = query; i < query + n; i++) {
        struct run r = keys_of_query(a, sequence, i);
        if (r.first < r.end) {
            all.first = min_i64(all.first, r.first);
            all.end = max_i64(all.end, r.end);
        }
    }
    return all;
}

static void zero_floats(float *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Row of scores, width floats, to exp(score - largest) for the keys that the query sees, 0
 * elsewhere. Returns the sum. */
static float weigh_row(const struct view *a, float *row, struct run seen, int64_t width, float *top)
{
    zero_floats(row, seen.first);
    zero_floats(row + seen.end, width - seen.end);
    *top = a->kernels->largest(row + seen.first, seen.end - seen.first);
    return a->kernels->exp_store(row + seen.first, *top, seen.end - seen.first);
}

/* The strip's row of output [K] is a sum over its keys of weights that add to `sum`: normalise, and
 * combine with what o and lse hold if merge. */
static void finish_row(const struct view *a, float *o, float *lse, const float *row, float sum,
                       float top, int merge)
{
    double mine = (double)top + log((double)sum), before = merge ? *lse : -INFINITY;
    double high = mine > before ? mine : before, both = mine;
    if (merge && before != -INFINITY) {
        both = high + log(exp(mine - high) + exp(before - high));
    }
    float take = (float)(exp(mine - both) / sum), keep = merge ? (float)exp(before - both) : 0;
    if (merge) {
        a->kernels->mix(o, keep, row, take, a->s->K);
    } else {
        a->kernels->scale(o, take, a->s->K);
    }
    *lse = (float)both;
}

static void forward_strip(const struct view *a, float *o, float *lse, int64_t sequence, int h,
                          int64_t first, int merge, float *scratch)
{
    const struct attention_shape *s = a->s;
    int64_t n = min_i64(STRIP, s->Tq - first), query = sequence * s->Tq + first,
            group = h / (s->H / s->G);
    struct run all = keys_of_strip(a, sequence, query, n);
    int64_t width = max_i64(0, all.end - all.first),
            at = (sequence * s->Tk + all.first) * s->ldkv + group * s->K;
    float *scores = scratch,
          *tile = merge ? scratch + STRIP * a->ld : o + query * s->ldo + (int64_t)h * s->K;
    int64_t ldt = merge ? s->K : s->ldo;
    float sum[STRIP], top[STRIP];
    if (width > 0) {
        cpu_product('n', 't', n, width, s->K, (float)s->scale,
                    a->q + query * s->ldq + (int64_t)h * s->K, s->ldq, a->k + at, s->ldkv, 0,
                    scores, a->ld);
    }
    for (int64_t i = 0; i < n && width > 0; i++) {
        struct run seen = keys_of_query(a, sequence, query + i);
        int none = seen.end <= seen.first;
        seen = none ? (struct run){ 0, 0 }
                    : (struct run){ seen.first - all.first, seen.end - all.first };
        sum[i] = weigh_row(a, scores + i * a->ld, seen, width, &top[i]);
        sum[i] = none ? 0 : sum[i];
    }
    if (width > 0) {
        cpu_product('n', 'n', n, s->K, width, 1, scores, a->ld, a->v + at, s->ldkv, 0, tile, ldt);
    }
    for (int64_t i = 0; i < n; i++) {
        float *out = o + (query + i) * s->ldo + (int64_t)h * s->K,
              *l = lse + (int64_t)h * s->B * s->Tq + query + i;
        if (width > 0 && sum[i] != 0) {
            finish_row(a, out, l, tile + i * ldt, sum[i], top[i], merge);
        } else if (!merge) {
            zero_floats(out, s->K);
            *l = -INFINITY;
        }
    }
}

void cpu_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                   struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                   const struct attention_shape *s, int merge, dptr scratch)
{
    struct view a = { .s = s,
                      .kernels = cpu_kernels(),
                      .q = cpu_floats(qq),
                      .k = cpu_floats(k),
                      .v = cpu_floats(v),
                      .qplace = cpu_int32(qplace),
                      .qstart = cpu_int32(qstart),
                      .kplace = cpu_int32(kplace),
                      .ld = stride_of(s) };
    int64_t strips = ceil_div(s->Tq, STRIP), heads = (int64_t)s->B * s->H;
    int whole_heads =
        heads % q->threads == 0; /* else deal out strips, of which later ones are longer */
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        float *mine = (float *)(void *)scratch.p + part * scratch_floats(s);
        for (int64_t i = 0; i < heads * strips; i++) {
            int64_t head = i / strips,
                    owner = whole_heads ? head * q->threads / heads : (head + i) % q->threads;
            if (owner == part) {
                forward_strip(&a, cpu_floats(o), cpu_floats(lse), head / s->H, (int)(head % s->H),
                              i % strips * STRIP, merge, mine);
            }
        }
    }
}

void cpu_attention_delta(struct queue *q, struct operand delta, struct operand o,
                         struct operand dout, const struct attention_shape *s)
{
    const struct cpu_kernels *k = cpu_kernels();
    int64_t queries = (int64_t)s->B * s->Tq;
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, queries, 1);
        for (int64_t t = share.first; t < share.first + share.count; t++) {
            for (int64_t h = 0; h < s->H; h++) {
                int64_t at = t * s->ldo + h * s->K;
                cpu_floats(delta)[h * queries + t] =
                    k->dot(cpu_floats(o) + at, cpu_floats(dout) + at, s->K);
            }
        }
    }
}

struct gradient {
    float *dq;
    float *dk, *dv; /* of the sequence's first key and the head, keys `ld` apart */
    int64_t ld;
    const float *lse, *delta;
    int add; /* dq; dk and dv always accumulate */
};

/* A strip's weights p and gradients ds of its scaled scores (Dao et al. 2022, section B.4), which
 * come as scores and products of dout and v. */
static void grade_rows(const struct view *a, const struct gradient *g, int64_t sequence, int h,
                       int64_t query, int64_t n, struct run all, float *p, float *ds)
{
    int64_t width = all.end - all.first, tokens = (int64_t)a->s->B * a->s->Tq;
    for (int64_t i = 0; i < n; i++) {
        struct run seen = keys_of_query(a, sequence, query + i);
        float *weights = p + i * a->ld, *scores = ds + i * a->ld;
        int64_t stat = h * tokens + query + i;
        int64_t from = seen.first - all.first, to = seen.end - all.first;
        if (to <= from) {
            from = to = width;
        }
        zero_floats(weights, from);
        zero_floats(scores, from);
        a->kernels->score_grad(weights + from, scores + from, g->lse[stat], g->delta[stat],
                               (float)a->s->scale, to - from);
        zero_floats(weights + to, width - to);
        zero_floats(scores + to, width - to);
    }
}

static void backward_strip(const struct view *a, const struct gradient *g, int64_t sequence, int h,
                           int64_t first, float *scratch)
{
    const struct attention_shape *s = a->s;
    int64_t n = min_i64(STRIP, s->Tq - first), query = sequence * s->Tq + first;
    struct run all = keys_of_strip(a, sequence, query, n);
    int64_t width = all.end - all.first, group = h / (s->H / s->G);
    int64_t at = (sequence * s->Tk + all.first) * s->ldkv + group * s->K;
    int64_t at_q = query * s->ldq + (int64_t)h * s->K, at_o = query * s->ldo + (int64_t)h * s->K;
    float *p = scratch, *ds = scratch + STRIP * a->ld;
    float *dk = g->dk + all.first * g->ld, *dv = g->dv + all.first * g->ld;
    float keep = (float)!!g->add;
    if (width <= 0) {
        for (int64_t i = 0; i < n && !g->add; i++) {
            zero_floats(g->dq + at_q + i * s->ldq, s->K);
        }
        return;
    }
    cpu_product('n', 't', n, width, s->K, (float)s->scale, a->q + at_q, s->ldq, a->k + at, s->ldkv,
                0, p, a->ld);
    cpu_product('n', 't', n, width, s->K, 1, a->dout + at_o, s->ldo, a->v + at, s->ldkv, 0, ds,
                a->ld);
    grade_rows(a, g, sequence, h, query, n, all, p, ds);
    cpu_product('t', 'n', width, s->K, n, 1, p, a->ld, a->dout + at_o, s->ldo, 1, dv, g->ld);
    cpu_product('n', 'n', n, s->K, width, 1, ds, a->ld, a->k + at, s->ldkv, keep, g->dq + at_q,
                s->ldq);
    cpu_product('t', 'n', width, s->K, n, 1, ds, a->ld, a->q + at_q, s->ldq, 1, dk, g->ld);
}

static void clear_keys(const struct view *a, const struct gradient *g)
{
    for (int64_t j = 0; j < a->s->Tk; j++) {
        zero_floats(g->dk + j * g->ld, a->s->K);
        zero_floats(g->dv + j * g->ld, a->s->K);
    }
}

/* Every `step`-th strip of the query heads of one key head. */
static void backward_strips(const struct view *a, const struct gradient *g, int64_t sequence,
                            int group, int64_t first, int64_t step, float *scratch)
{
    int64_t strips = ceil_div(a->s->Tq, STRIP), heads = a->s->H / a->s->G;
    for (int64_t i = first; i < heads * strips; i += step) {
        int h = (int)(group * heads + i / strips);
        backward_strip(a, g, sequence, h, i % strips * STRIP, scratch);
    }
}

/* All threads on one key head: each sums its strips apart, then the sums are added in order. */
static void backward_together(struct queue *q, const struct view *a, const struct gradient *g,
                              int64_t sequence, int group, float *scratch)
{
    const struct attention_shape *s = a->s;
    int64_t each = scratch_floats(s), skip = strips_floats(s), half = s->Tk * s->K;
    QUEUE_EACH_PART(part)
    {
        struct gradient mine = *g;
        mine.dk = scratch + part * each + skip;
        mine.dv = mine.dk + half;
        mine.ld = s->K;
        clear_keys(a, &mine);
        backward_strips(a, &mine, sequence, group, part, q->threads, scratch + part * each);
    }
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, s->Tk, 1);
        for (int64_t j = share.first; j < share.first + share.count; j++) {
            for (int i = 0; i < q->threads; i++) {
                const float *sum = scratch + i * each + skip + j * s->K;
                a->kernels->add(g->dk + j * g->ld, g->dk + j * g->ld, sum, s->K);
                a->kernels->add(g->dv + j * g->ld, g->dv + j * g->ld, sum + half, s->K);
            }
        }
    }
}

void cpu_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                        struct operand dout, struct operand qq, struct operand k, struct operand v,
                        struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                        dptr kplace, const struct attention_shape *s, int add, dptr scratch)
{
    struct view a = { .s = s,
                      .kernels = cpu_kernels(),
                      .q = cpu_floats(qq),
                      .k = cpu_floats(k),
                      .v = cpu_floats(v),
                      .dout = cpu_floats(dout),
                      .qplace = cpu_int32(qplace),
                      .qstart = cpu_int32(qstart),
                      .kplace = cpu_int32(kplace),
                      .ld = stride_of(s) };
    struct gradient all = { .dq = cpu_floats(dq),
                            .ld = s->ldkv,
                            .lse = cpu_floats(lse),
                            .delta = cpu_floats(delta),
                            .add = add };
    float *work = (float *)(void *)scratch.p, *dk0 = cpu_floats(dk), *dv0 = cpu_floats(dv);
    int64_t groups = (int64_t)s->B * s->G, each = scratch_floats(s);
    int together = groups % q->threads != 0;
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, groups, 1);
        for (int64_t i = share.first; i < share.first + share.count; i++) {
            struct gradient g = all;
            g.dk = dk0 + i / s->G * s->Tk * s->ldkv + i % s->G * s->K;
            g.dv = dv0 + (g.dk - dk0);
            if (!add) {
                clear_keys(&a, &g);
            }
            if (!together) {
                backward_strips(&a, &g, i / s->G, (int)(i % s->G), 0, 1, work + part * each);
            }
        }
    }
    for (int64_t i = 0; i < groups && together; i++) {
        struct gradient g = all;
        g.dk = dk0 + i / s->G * s->Tk * s->ldkv + i % s->G * s->K;
        g.dv = dv0 + (g.dk - dk0);
        backward_together(q, &a, &g, i / s->G, (int)(i % s->G), work);
    }
}
