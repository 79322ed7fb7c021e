/* The next token: greedy, the sets that top-k and top-p leave, and how often each token comes. */
#include <math.h>

#include "base/arena.h"
#include "infer/sample.h"

#include "../tap.h"

enum { V = 50, DRAWS = 20000 };

static struct sample_candidate room[V];

static int32_t pick(struct sample_rule r, const float *x, uint64_t prompt, uint64_t position)
{
    return sample_token(&r, x, F32, V, prompt, position, room);
}

/* Shares of DRAWS draws. */
static void draw(struct sample_rule r, const float *x, double share[V])
{
    for (int i = 0; i < V; i++)
        share[i] = 0;
    for (int i = 0; i < DRAWS; i++)
        share[pick(r, x, (uint64_t)(i % 7), (uint64_t)(i / 7))] += 1.0 / DRAWS;
}

/* What the rule promises, worked out the slow way: token i is among those that are left if fewer
 * than k are before it, and less than top_p of the probability of those that k leaves. */
static void expect(struct sample_rule r, const float *x, double want[V])
{
    double p[V], before, all = 0, left = 0;
    int rank;

    for (int i = 0; i < V; i++)
        p[i] = exp(((double)x[i] - 5) / r.temperature); /* 5: none is larger */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < V; i++) {
            rank = 0;
            before = 0;
            for (int j = 0; j < V; j++)
                if (p[j] > p[i] || (p[j] == p[i] && j < i)) {
                    rank++;
                    before += p[j];
                }
            if (pass == 0)
                all += r.top_k == 0 || rank < r.top_k ? p[i] : 0;
            else
                want[i] = (r.top_k == 0 || rank < r.top_k) &&
                                  (rank == 0 || before < r.top_p * all * (1 - 1e-12))
                              ? p[i]
                              : 0;
        }
    for (int i = 0; i < V; i++)
        left += want[i];
    for (int i = 0; i < V; i++)
        want[i] /= left;
}

/* Every token that may come does, the others never, each in its share: six standard deviations. */
static int holds(struct sample_rule r, const float *x)
{
    double share[V], want[V];
    int good = 1;

    draw(r, x, share);
    expect(r, x, want);
    for (int i = 0; i < V; i++)
        good &= want[i] == 0
                    ? share[i] == 0
                    : fabs(share[i] - want[i]) <= 6 * sqrt(want[i] * (1 - want[i]) / DRAWS) + 1e-12;
    return good;
}

static void test_greedy(void)
{
    float x[V] = { 0 };
    double y[V];
    struct sample_rule r = { .top_p = 1 };

    x[7] = x[9] = 2;
    tap_ok(pick(r, x, 0, 0) == 7, "greedy: the lowest id of equals");
    for (int i = 0; i < V; i++)
        y[i] = x[i];
    y[9] += 1e-12; /* a float would not see it */
    tap_ok(sample_token(&r, y, F64, V, 0, 0, room) == 9, "greedy, float64");
    x[3] = NAN;
    tap_ok(pick(r, x, 0, 0) == -1, "a logit that is not a number");
    for (int i = 0; i < V; i++)
        x[i] = -INFINITY;
    tap_ok(pick(r, x, 0, 0) == -1, "no finite logit");
    x[5] = -3;
    r.temperature = 1;
    tap_ok(pick(r, x, 0, 0) == 5, "the only finite logit");
}

int main(void)
{
    static const struct sample_rule rules[] = {
        { 1, 0, 1, 1 },     { 0.5, 0, 1, 2 },     { 3, 0, 1, 3 },       { 1, 1, 1, 4 },
        { 1, 5, 1, 5 },     { 1, 17, 1, 6 },      { 1, 50, 1, 7 },      { 1, 500, 1, 8 },
        { 1, 0, 0, 9 },     { 1, 0, 0.3, 10 },    { 1, 0, 0.9, 11 },    { 1, 0, 0.999, 12 },
        { 2, 10, 0.5, 13 }, { 0.7, 20, 0.8, 14 }, { 1e-3, 0, 0.9, 15 },
    };
    float x[V];
    struct sample_rule r = { 1, 0, 1, 1 };
    int same = 1, other = 0, seeds = 0;

    tap_plan(5 + COUNT_OF(rules) + 3);
    test_greedy();
    for (int i = 0; i < V; i++)
        x[i] = (float)(4 * sin(i * 1.7) + (i % 5 == 0)); /* some are equal */
    x[30] = x[31] = x[32];
    for (int i = 0; i < COUNT_OF(rules); i++)
        tap_ok(holds(rules[i], x), "temperature %g, top k %d, top p %g", rules[i].temperature,
               (int)rules[i].top_k, rules[i].top_p);
    for (int i = 0; i < 100; i++) {
        int32_t a = pick(r, x, 5, (uint64_t)i);
        same &= a == pick(r, x, 5, (uint64_t)i);
        other += a != pick(r, x, 6, (uint64_t)i);
        seeds += a != pick((struct sample_rule){ 1, 0, 1, 2 }, x, 5, (uint64_t)i);
    }
    tap_ok(same, "the same draw again");
    tap_ok(other > 30, "other draws for another prompt (%d of 100)", other);
    tap_ok(seeds > 30, "and for another seed (%d of 100)", seeds);
    return tap_done();
}
