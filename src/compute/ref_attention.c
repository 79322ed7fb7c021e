#include "compute/ref.h"

#include <math.h>

enum { HEAD_MAX = 256 };

struct attention_view { /* what all three passes read */
    struct operand q, k, v, dout;
    const int32_t *qplace, *qstart, *kplace;
    const struct attention_shape *s;
};

static int is_seen(const struct attention_view *a, int64_t query, int64_t key)
{
    return a->kplace[key] <= a->qplace[query] && a->kplace[key] >= a->qstart[query];
}

static double dot(struct operand a, int64_t a_at, struct operand b, int64_t b_at, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ref_get(a, a_at + i) * ref_get(b, b_at + i);
    }
    return sum;
}

static double score(const struct attention_view *a, int64_t query, int h, int64_t key)
{
    const struct attention_shape *s = a->s;
    int g = h / (s->H / s->G);
    return s->scale * dot(a->q, query * s->ldq + (int64_t)h * s->K, a->k,
                          key * s->ldkv + (int64_t)g * s->K, s->K);
}

/* log(exp(a) + exp(b)), not both -inf */
static double log_sum(double a, double b)
{
    double top = a > b ? a : b, low = a > b ? b : a;
    return top + log1p(exp(low - top));
}

/* One query and head: out [K] = weighted values, returns the log of the sum. scores: Tk doubles. */
static double attend(const struct attention_view *a, int64_t sequence, int64_t query, int h,
                     double *scores, double *out)
{
    const struct attention_shape *s = a->s;
    int64_t value = (int64_t)(h / (s->H / s->G)) * s->K, first = sequence * s->Tk;
    double top = -INFINITY, sum = 0;
    int seen = 0;
    for (int64_t d = 0; d < s->K; d++) {
        out[d] = 0;
    }
    for (int64_t j = 0; j < s->Tk; j++) {
        if (is_seen(a, query, first + j)) {
            scores[j] = score(a, query, h, first + j);
            top = scores[j] > top ? scores[j] : top;
            seen = 1;
        }
    }
    for (int64_t j = 0; j < s->Tk; j++) {
        if (is_seen(a, query, first + j)) {
            double p = exp(scores[j] - top);
            sum += p;
            for (int64_t d = 0; d < s->K; d++) {
                out[d] += p * ref_get(a->v, (first + j) * s->ldkv + value + d);
            }
        }
    }
    for (int64_t d = 0; seen && d < s->K; d++) {
        out[d] /= sum;
    }
    return seen ? top + log(sum) : -INFINITY;
}

void ref_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                   struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                   const struct attention_shape *s, int merge, dptr scratch)
{
    struct attention_view a = { .q = qq,
                                .k = k,
                                .v = v,
                                .qplace = ref_int32(qplace),
                                .qstart = ref_int32(qstart),
                                .kplace = ref_int32(kplace),
                                .s = s };
    int64_t queries = (int64_t)s->B * s->Tq;
    BUG_IF(s->K > HEAD_MAX);
    QUEUE_EACH_PART(part)
    {
        struct queue_share share = queue_share(q, part, queries * s->H, 1);
        double *scores = ref_double(scratch) + (int64_t)part * s->Tk, out[HEAD_MAX];
        for (int64_t i = share.first; i < share.first + share.count; i++) {
            int64_t query = i % queries, at = query * s->ldo + i / queries * s->K;
            int h = (int)(i / queries);
            double l = attend(&a, query / s->Tq, query, h, scores, out),
                   before = merge ? ref_get(lse, i) : -INFINITY;
            if (merge && l == -INFINITY) {
                continue;
            }
            double both = merge ? log_sum(before, l) : l;
            double keep = merge ? exp(before - both) : 0, take = merge ? exp(l - both) : 1;
            for (int64_t d = 0; d < s->K; d++) {
                double old = merge ? keep * ref_get(o, at + d) : 0;
                ref_put(o, at + d, old + take * out[d]);
            }
            ref_put(lse, i, both);
        }
    }
}

void ref_attention_delta(struct queue *q, struct operand delta, struct operand o,
                         struct operand dout, const struct attention_shape *s)
{
    int64_t queries = (int64_t)s->B * s->Tq;
    REF_ROWS
    for (int64_t i = 0; i < queries * s->H; i++) {
        int64_t at = i % queries * s->ldo + i / queries * s->K;
        ref_put(delta, i, dot(o, at, dout, at, s->K));
    }
}

/* The weight p of one pair and the gradient ds of its scaled score (Dao et al. 2022, section B.4).
 */
static void pair_grad(const struct attention_view *a, int64_t query, int h, int64_t key, double lse,
                      double delta, double *p, double *ds)
{
    const struct attention_shape *s = a->s;
    int64_t value = (int64_t)(h / (s->H / s->G)) * s->K;
    *p = exp(score(a, query, h, key) - lse);
    *ds = s->scale * *p *
          (dot(a->dout, query * s->ldo + (int64_t)h * s->K, a->v, key * s->ldkv + value, s->K) -
           delta);
}

static void put_run(struct operand o, int64_t at, const double *x, int64_t n, int add)
{
    for (int64_t i = 0; i < n; i++) {
        ref_put(o, at + i, add ? ref_get(o, at + i) + x[i] : x[i]);
    }
}

/* dq of one query and head: a sum over its keys. */
static void grad_query(const struct attention_view *a, struct operand dq, struct operand lse,
                       struct operand delta, int64_t i, int add)
{
    const struct attention_shape *s = a->s;
    int64_t queries = (int64_t)s->B * s->Tq, query = i % queries, first = query / s->Tq * s->Tk;
    int h = (int)(i / queries);
    double sum[HEAD_MAX] = { 0 }, p, ds;
    for (int64_t j = first; j < first + s->Tk; j++) {
        if (is_seen(a, query, j)) {
            pair_grad(a, query, h, j, ref_get(lse, i), ref_get(delta, i), &p, &ds);
            for (int64_t d = 0; d < s->K; d++) {
                sum[d] += ds * ref_get(a->k, j * s->ldkv + (int64_t)(h / (s->H / s->G)) * s->K + d);
            }
        }
    }
    put_run(dq, query * s->ldq + (int64_t)h * s->K, sum, s->K, add);
}

/* dk and dv of one key and key head: a sum over the heads that read it and their queries. */
static void grad_key(const struct attention_view *a, struct operand dk, struct operand dv,
                     struct operand lse, struct operand delta, int64_t i, int add)
{
    const struct attention_shape *s = a->s;
    int64_t keys = (int64_t)s->B * s->Tk, key = i % keys, first = key / s->Tk * s->Tq,
            at = key * s->ldkv + i / keys * s->K;
    int heads = s->H / s->G, from = (int)(i / keys) * heads;
    double sum_k[HEAD_MAX] = { 0 }, sum_v[HEAD_MAX] = { 0 }, p, ds;
    for (int h = from; h < from + heads; h++) {
        for (int64_t t = first; t < first + s->Tq; t++) {
            if (is_seen(a, t, key)) {
                int64_t stat = (int64_t)h * s->B * s->Tq + t;
                pair_grad(a, t, h, key, ref_get(lse, stat), ref_get(delta, stat), &p, &ds);
                for (int64_t d = 0; d < s->K; d++) {
                    sum_k[d] += ds * ref_get(a->q, t * s->ldq + (int64_t)h * s->K + d);
                    sum_v[d] += p * ref_get(a->dout, t * s->ldo + (int64_t)h * s->K + d);
                }
            }
        }
    }
    put_run(dk, at, sum_k, s->K, add);
    put_run(dv, at, sum_v, s->K, add);
}

void ref_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                        struct operand dout, struct operand qq, struct operand k, struct operand v,
                        struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                        dptr kplace, const struct attention_shape *s, int add, dptr scratch)
{
    struct attention_view a = { .q = qq,
                                .k = k,
                                .v = v,
                                .dout = dout,
                                .qplace = ref_int32(qplace),
                                .qstart = ref_int32(qstart),
                                .kplace = ref_int32(kplace),
                                .s = s };
    (void)scratch;
    BUG_IF(s->K > HEAD_MAX);
    REF_ROWS
    for (int64_t i = 0; i < (int64_t)s->B * s->Tq * s->H; i++) {
        grad_query(&a, dq, lse, delta, i, add);
    }
    REF_ROWS
    for (int64_t i = 0; i < (int64_t)s->B * s->Tk * s->G; i++) {
        grad_key(&a, dk, dv, lse, delta, i, add);
    }
}

size_t ref_attention_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    (void)t;
    return (size_t)threads * (size_t)s->Tk * sizeof(double);
}
