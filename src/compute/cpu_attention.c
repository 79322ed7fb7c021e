#include "compute/cpu.h"

#include <math.h>
#include <string.h>

/* Attention by strips of queries: the scores of a strip with all keys that any of its queries sees
 * are one product, then come row loops, then one product (forward) or three (backward). Keys are
 * consecutive, so a query sees one run of them. */
enum { STRIP = 64, ALIGN = 16, HEAD_MAX = 256 };

struct view {
    const struct attention_shape *s;
    const struct cpu_kernels *kernels;
    struct operand q, k, v, dout;
    const int32_t *qplace, *qstart, *kplace;
    int64_t ld; /* row stride of a strip's scores */
};

/* One thread's scratch. Floats of two-byte operands are made in the last three. */
struct work {
    float *scores;          /* [STRIP, ld]                                       */
    float *other;           /* [STRIP, ld]: gradients of scores; forward: output */
    float *dk, *dv;         /* [Tk, K] each                                      */
    float *k, *v;           /* [Tk, K] each                                      */
    float *queries, *douts; /* [STRIP, K] each                                   */
    float *dq;              /* [STRIP, K]                                        */
};

/* Keys and values of one sequence and key head. */
struct keys {
    struct cpu_panel k, v;
    int64_t head; /* sequence * G + key head that is here, or -1 */
};

/* Keys first .. end-1 of the sequence's; none if end <= first. */
struct run {
    int64_t first, end;
};

static int64_t stride_of(const struct attention_shape *s)
{
    return ceil_div(s->Tk, ALIGN) * ALIGN + ALIGN;
}

static int64_t strip_floats(const struct attention_shape *s)
{
    return STRIP * max_i64(stride_of(s), ceil_div(s->K, ALIGN) * ALIGN);
}

static int64_t keys_floats(const struct attention_shape *s)
{
    return ceil_div((int64_t)s->Tk * s->K, ALIGN) * ALIGN;
}

static int64_t scratch_floats(const struct attention_shape *s, enum dtype t)
{
    int64_t floats = 2 * strip_floats(s) + 2 * keys_floats(s);
    return t == F32 ? floats : floats + 2 * keys_floats(s) + 3 * STRIP * (int64_t)s->K;
}

size_t cpu_attention_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    return (size_t)threads * (size_t)scratch_floats(s, t) * sizeof(float);
}

static struct work work_of(const struct attention_shape *s, enum dtype t, dptr scratch, int part)
{
    float *p = (float *)(void *)scratch.p + part * scratch_floats(s, t);
    struct work w = { .scores = p, .other = p + strip_floats(s) };
    w.dk = w.other + strip_floats(s);
    w.dv = w.dk + keys_floats(s);
    if (t != F32) {
        w.k = w.dv + keys_floats(s);
        w.v = w.k + keys_floats(s);
        w.queries = w.v + keys_floats(s);
        w.douts = w.queries + STRIP * (int64_t)s->K;
        w.dq = w.douts + STRIP * (int64_t)s->K;
    }
    return w;
}

static void load_keys(const struct view *a, struct keys *keys, int64_t head, const struct work *w)
{
    const struct attention_shape *s = a->s;
    int64_t at = head / s->G * s->Tk * s->ldkv + head % s->G * s->K;
    if (keys->head != head) {
        keys->k = cpu_panel(operand_at(a->k, at), s->ldkv, s->Tk, s->K, w->k, s->K);
        keys->v = cpu_panel(operand_at(a->v, at), s->ldkv, s->Tk, s->K, w->v, s->K);
        keys->head = head;
    }
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

/* A row of the strip's output [K] is a sum over its keys of weights that add to `sum`: normalise,
 * and combine with what o and lse hold if merge. */
static void finish_row(const struct view *a, struct operand o, float *lse, float *row, float sum,
                       float top, int merge)
{
    double mine = (double)top + log((double)sum), before = merge ? *lse : -INFINITY;
    double high = mine > before ? mine : before, both = mine;
    if (merge && before != -INFINITY) {
        both = high + log(exp(mine - high) + exp(before - high));
    }
    float take = (float)(exp(mine - both) / sum), keep = merge ? (float)exp(before - both) : 0;
    float piece[HEAD_MAX], *out = merge ? cpu_place(o, 0, piece) : row;
    if (merge) {
        cpu_get(o, 0, a->s->K, piece);
        a->kernels->mix(out, keep, row, take, a->s->K);
    } else {
        a->kernels->scale(out, take, a->s->K);
    }
    cpu_put(o, 0, out, a->s->K);
    *lse = (float)both;
}

/* Sums over keys go to `other`, or straight to an o of floats. */
static void forward_strip(const struct view *a, const struct keys *keys, struct operand o,
                          float *lse, int64_t sequence, int h, int64_t first, int merge,
                          const struct work *w)
{
    const struct attention_shape *s = a->s;
    int64_t n = min_i64(STRIP, s->Tq - first), query = sequence * s->Tq + first;
    struct run all = keys_of_strip(a, sequence, query, n);
    int64_t width = max_i64(0, all.end - all.first), apart = merge || o.t != F32;
    struct operand out = operand_at(o, query * s->ldo + (int64_t)h * s->K);
    float *tile = apart ? w->other : cpu_floats(out), sum[STRIP], top[STRIP];
    int64_t ld = apart ? s->K : s->ldo;
    if (width > 0) {
        struct cpu_panel q = cpu_panel(operand_at(a->q, query * s->ldq + (int64_t)h * s->K), s->ldq,
                                       n, s->K, w->queries, s->K);
        cpu_product('n', 't', n, width, s->K, (float)s->scale, q.p, q.ld,
                    keys->k.p + all.first * keys->k.ld, keys->k.ld, 0, w->scores, a->ld);
    }
    for (int64_t i = 0; i < n && width > 0; i++) {
        struct run seen = keys_of_query(a, sequence, query + i);
        int none = seen.end <= seen.first;
        seen = none ? (struct run){ 0, 0 }
                    : (struct run){ seen.first - all.first, seen.end - all.first };
        sum[i] = weigh_row(a, w->scores + i * a->ld, seen, width, &top[i]);
        sum[i] = none ? 0 : sum[i];
    }
    if (width > 0) {
        cpu_product('n', 'n', n, s->K, width, 1, w->scores, a->ld,
                    keys->v.p + all.first * keys->v.ld, keys->v.ld, 0, tile, ld);
    }
    for (int64_t i = 0; i < n; i++) {
        float *l = lse + (int64_t)h * s->B * s->Tq + query + i;
        struct operand row = operand_at(out, i * s->ldo);
        if (width > 0 && sum[i] != 0) {
            finish_row(a, row, l, tile + i * ld, sum[i], top[i], merge);
        } else if (!merge) {
            memset(row.p.p, 0, (size_t)s->K * dtype_size(row.t));
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
                      .q = qq,
                      .k = k,
                      .v = v,
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
        struct work mine = work_of(s, qq.t, scratch, part);
        struct keys keys = { .head = -1 };
        for (int64_t i = 0; i < heads * strips; i++) {
            int64_t head = i / strips,
                    owner = whole_heads ? head * q->threads / heads : (head + i) % q->threads;
            if (owner == part) {
                load_keys(&a, &keys, head / s->H * s->G + head % s->H / (s->H / s->G), &mine);
                forward_strip(&a, &keys, o, cpu_floats(lse), head / s->H, (int)(head % s->H),
                              i % strips * STRIP, merge, &mine);
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
        float o_piece[HEAD_MAX], dout_piece[HEAD_MAX];
        for (int64_t t = share.first; t < share.first + share.count; t++) {
            for (int64_t h = 0; h < s->H; h++) {
                int64_t at = t * s->ldo + h * s->K;
                cpu_floats(delta)[h * queries + t] = k->dot(
                    cpu_get(o, at, s->K, o_piece), cpu_get(dout, at, s->K, dout_piece), s->K);
            }
        }
    }
}

struct gradient {
    struct operand dq, dk, dv;
    float *dk_sum, *dv_sum; /* of the sequence's first key and the head, keys `ld` apart */
    int64_t ld;
    const float *lse, *delta;
    int add;
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

static void backward_strip(const struct view *a, const struct keys *keys, const struct gradient *g,
                           int64_t sequence, int h, int64_t first, const struct work *w)
{
    const struct attention_shape *s = a->s;
    int64_t n = min_i64(STRIP, s->Tq - first), query = sequence * s->Tq + first;
    struct run all = keys_of_strip(a, sequence, query, n);
    int64_t width = all.end - all.first, at = (int64_t)h * s->K;
    struct operand dq = operand_at(g->dq, query * s->ldq + at);
    if (width <= 0) {
        for (int64_t i = 0; i < n && !g->add; i++) {
            memset(operand_at(dq, i * s->ldq).p.p, 0, (size_t)s->K * dtype_size(dq.t));
        }
        return;
    }
    const float *k = keys->k.p + all.first * keys->k.ld, *v = keys->v.p + all.first * keys->v.ld;
    float *dk = g->dk_sum + all.first * g->ld, *dv = g->dv_sum + all.first * g->ld;
    struct cpu_panel q =
        cpu_panel(operand_at(a->q, query * s->ldq + at), s->ldq, n, s->K, w->queries, s->K);
    struct cpu_panel dout =
        cpu_panel(operand_at(a->dout, query * s->ldo + at), s->ldo, n, s->K, w->douts, s->K);
    struct cpu_panel sum = cpu_panel(dq, s->ldq, g->add ? n : 0, s->K, w->dq, s->K);
    cpu_product('n', 't', n, width, s->K, (float)s->scale, q.p, q.ld, k, keys->k.ld, 0, w->scores,
                a->ld);
    cpu_product('n', 't', n, width, s->K, 1, dout.p, dout.ld, v, keys->v.ld, 0, w->other, a->ld);
    grade_rows(a, g, sequence, h, query, n, all, w->scores, w->other);
    cpu_product('t', 'n', width, s->K, n, 1, w->scores, a->ld, dout.p, dout.ld, 1, dv, g->ld);
    cpu_product('n', 'n', n, s->K, width, 1, w->other, a->ld, k, keys->k.ld, (float)!!g->add,
                cpu_place(dq, 0, w->dq), sum.ld);
    cpu_product('t', 'n', width, s->K, n, 1, w->other, a->ld, q.p, q.ld, 1, dk, g->ld);
    for (int64_t i = 0; i < n; i++) {
        cpu_put(dq, i * s->ldq, w->dq + i * s->K, s->K);
    }
}

/* Where sums of the gradients of a head's keys and values are made: in place if they are floats. */
static void begin_keys(const struct view *a, struct gradient *g, const struct work *w)
{
    const struct attention_shape *s = a->s;
    g->ld = g->dk.t == F32 ? s->ldkv : s->K;
    g->dk_sum = cpu_place(g->dk, 0, w->dk);
    g->dv_sum = cpu_place(g->dv, 0, w->dv);
    if (g->add) {
        cpu_panel(g->dk, s->ldkv, s->Tk, s->K, w->dk, s->K);
        cpu_panel(g->dv, s->ldkv, s->Tk, s->K, w->dv, s->K);
        return;
    }
    for (int64_t j = 0; j < s->Tk; j++) {
        zero_floats(g->dk_sum + j * g->ld, s->K);
        zero_floats(g->dv_sum + j * g->ld, s->K);
    }
}

static void end_keys(const struct view *a, const struct gradient *g)
{
    for (int64_t j = 0; j < a->s->Tk; j++) {
        cpu_put(g->dk, j * a->s->ldkv, g->dk_sum + j * g->ld, a->s->K);
        cpu_put(g->dv, j * a->s->ldkv, g->dv_sum + j * g->ld, a->s->K);
    }
}

/* Every `step`-th strip of the query heads of one key head. */
static void backward_strips(const struct view *a, const struct gradient *g, int64_t head,
                            int64_t first, int64_t step, const struct work *w)
{
    int64_t strips = ceil_div(a->s->Tq, STRIP), heads = a->s->H / a->s->G;
    struct keys keys = { .head = -1 };
    load_keys(a, &keys, head, w);
    for (int64_t i = first; i < heads * strips; i += step) {
        int h = (int)(head % a->s->G * heads + i / strips);
        backward_strip(a, &keys, g, head / a->s->G, h, i % strips * STRIP, w);
    }
}

/* The gradient of the row of a key, or of a value: what was there if add, and each thread's sum. */
static void add_sums(const struct view *a, struct operand row, int add, const float *sum,
                     int64_t step, int threads)
{
    float piece[HEAD_MAX], *out = cpu_place(row, 0, piece);
    if (add) {
        cpu_get(row, 0, a->s->K, piece);
    } else {
        zero_floats(out, a->s->K);
    }
    for (int i = 0; i < threads; i++) {
        a->kernels->add(out, out, sum + i * step, a->s->K);
    }
    cpu_put(row, 0, out, a->s->K);
}

/* All threads on one key head: each sums its strips apart, then the sums are added in order. */
static void backward_together(struct queue *q, const struct view *a, const struct gradient *g,
                              int64_t head, dptr scratch)
{
    const struct attention_shape *s = a->s;
    struct work first = work_of(s, a->q.t, scratch, 0);
    int64_t step = scratch_floats(s, a->q.t);
    QUEUE_EACH_PART(part)
    {
        struct work w = work_of(s, a->q.t, scratch, part);
        struct gradient mine = *g;
        mine.dk_sum = w.dk;
        mine.dv_sum = w.dv;
        mine.ld = s->K;
        zero_floats(w.dk, s->Tk * (int64_t)s->K);
        zero_floats(w.dv, s->Tk * (int64_t)s->K);
        backward_strips(a, &mine, head, part, q->threads, &w);
    }
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, s->Tk, 1);
        for (int64_t j = share.first; j < share.first + share.count; j++) {
            add_sums(a, operand_at(g->dk, j * s->ldkv), g->add, first.dk + j * s->K, step,
                     q->threads);
            add_sums(a, operand_at(g->dv, j * s->ldkv), g->add, first.dv + j * s->K, step,
                     q->threads);
        }
    }
}

static struct gradient gradient_of(const struct gradient *all, const struct attention_shape *s,
                                   int64_t head)
{
    struct gradient g = *all;
    int64_t at = head / s->G * s->Tk * s->ldkv + head % s->G * s->K;
    g.dk = operand_at(all->dk, at);
    g.dv = operand_at(all->dv, at);
    return g;
}

void cpu_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                        struct operand dout, struct operand qq, struct operand k, struct operand v,
                        struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                        dptr kplace, const struct attention_shape *s, int add, dptr scratch)
{
    struct view a = { .s = s,
                      .kernels = cpu_kernels(),
                      .q = qq,
                      .k = k,
                      .v = v,
                      .dout = dout,
                      .qplace = cpu_int32(qplace),
                      .qstart = cpu_int32(qstart),
                      .kplace = cpu_int32(kplace),
                      .ld = stride_of(s) };
    struct gradient all = {
        .dq = dq, .dk = dk, .dv = dv, .lse = cpu_floats(lse), .delta = cpu_floats(delta), .add = add
    };
    int64_t heads = (int64_t)s->B * s->G;
    int together = heads % q->threads != 0;
    cpu_products_begin(q);
    for (int64_t i = 0; i < heads && together; i++) {
        struct gradient g = gradient_of(&all, s, i);
        backward_together(q, &a, &g, i, scratch);
    }
    if (together) {
        return;
    }
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, heads, 1);
        struct work w = work_of(s, qq.t, scratch, part);
        for (int64_t i = share.first; i < share.first + share.count; i++) {
            struct gradient g = gradient_of(&all, s, i);
            begin_keys(&a, &g, &w);
            backward_strips(&a, &g, i, 0, 1, &w);
            end_keys(&a, &g);
        }
    }
}
