#include "infer/sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

/* Streams of random numbers: one for each prompt. */
#define RNG_SAMPLE ((uint64_t)0x67656e65 << 32)

static double logit(const void *logits, enum dtype t, int64_t i)
{
    return t == F64 ? ((const double *)logits)[i] : (double)((const float *)logits)[i];
}

/* -1: none */
static int64_t most_likely(const void *logits, enum dtype t, int64_t V)
{
    int64_t best = -1;
    double top = -INFINITY;

    for (int64_t i = 0; i < V; i++) {
        double x = logit(logits, t, i);
        if (isnan(x) || x == INFINITY)
            return -1;
        if (x > top) {
            top = x;
            best = i;
        }
    }
    return best;
}

/* More likely first, of equals the lower id: no two candidates are equal. */
static int order(const void *a, const void *b)
{
    const struct sample_candidate *x = a, *y = b;

    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* A heap of n whose root is the last in order; its root has changed. */
static void sink(struct sample_candidate *heap, int64_t n)
{
    for (int64_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
        struct sample_candidate x = heap[i];
        if (child + 1 < n && order(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (order(&heap[child], &x) <= 0)
            return;
        heap[i] = heap[child];
        heap[child] = x;
    }
}

/* The k first in order, of n; any order among them. */
static void keep_first(struct sample_candidate *c, int64_t n, int64_t k)
{
    for (int64_t i = 1; i < k; i++) { /* build the heap from its end */
        struct sample_candidate x = c[i];
        int64_t at = i;
        for (int64_t up; at > 0 && order(&x, &c[up = (at - 1) / 2]) > 0; at = up)
            c[at] = c[up];
        c[at] = x;
    }
    for (int64_t i = k; i < n; i++)
        if (order(&c[i], &c[0]) < 0) {
            c[0] = c[i];
            sink(c, k);
        }
}

/* Those that are not among the least likely whose sum cannot reach 1 - top_p. */
static int64_t drop_unlikely(struct sample_candidate *c, int64_t n, double sum, double top_p)
{
    double least = (1 - top_p) * sum / (double)n;
    int64_t kept = 0;

    for (int64_t i = 0; i < n; i++)
        if (c[i].p >= least)
            c[kept++] = c[i];
    return kept;
}

static double sum_of(const struct sample_candidate *c, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += c[i].p;
    return sum;
}

/* The fewest from the first on that add to top_p of the sum; in order. */
static int64_t nucleus(struct sample_candidate *c, int64_t n, double top_p)
{
    double sum = sum_of(c, n), part = 0;
    int64_t kept = 0;

    n = drop_unlikely(c, n, sum, top_p);
    qsort(c, (size_t)n, sizeof *c, order);
    while (kept < n && part < top_p * sum)
        part += c[kept++].p;
    return kept > 0 ? kept : 1;
}

int32_t sample_token(const struct sample_rule *r, const void *logits, enum dtype t, int64_t V,
                     uint64_t prompt, uint64_t position, struct sample_candidate *room)
{
    int64_t best = most_likely(logits, t, V), n = V;
    double top, draw;

    if (best < 0 || r->temperature == 0)
        return (int32_t)best;
    top = logit(logits, t, best);
    for (int64_t i = 0; i < V; i++)
        room[i] = (struct sample_candidate){ exp((logit(logits, t, i) - top) / r->temperature),
                                             (int32_t)i };
    if (r->top_k > 0 && r->top_k < n) {
        keep_first(room, n, r->top_k);
        n = r->top_k;
        qsort(room, (size_t)n, sizeof *room, order);
    }
    if (r->top_p < 1)
        n = nucleus(room, n, r->top_p);
    draw =
        (double)(rng_u64(r->seed, RNG_SAMPLE + prompt, position) >> 11) * 0x1p-53 * sum_of(room, n);
    for (int64_t i = 0; i < n - 1; i++)
        if ((draw -= room[i].p) < 0)
            return room[i].id;
    return room[n - 1].id;
}
