#include "data/interleave.h"

#include <math.h>

#include "base/arena.h"

int interleave_round(const double *weight, int n, int *units)
{
    double sum = 0, lost[INTERLEAVE_SOURCES];
    int left = INTERLEAVE_UNIT;

    BUG_IF(n < 1 || n > INTERLEAVE_SOURCES);
    for (int i = 0; i < n; i++)
        sum += weight[i];
    BUG_IF(!(sum > 0));
    for (int i = 0; i < n; i++) {
        double share = weight[i] / sum * INTERLEAVE_UNIT;

        units[i] = (int)floor(share);
        lost[i] = share - units[i];
        left -= units[i];
    }
    for (; left > 0; left--) { /* fewer than n */
        int most = 0;

        for (int i = 1; i < n; i++)
            most = lost[i] > lost[most] ? i : most;
        units[most]++;
        lost[most] = -1;
    }
    for (int i = 0; i < n; i++)
        if (weight[i] > 0 && units[i] == 0)
            return i;
    return -1;
}

static int common_divisor(int a, int b)
{
    while (b) {
        int rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The source to draw at t: of those whose next unit's window has begun, the one whose window ends
 * first. */
static int due(const struct interleave *x, const int *done, int t)
{
    int64_t best_end = INT64_MAX, period = x->period;
    int best = -1;

    for (int i = 0; i < x->n; i++) {
        int64_t w = x->count[i], end;

        if (w == 0 || done[i] * period >= (t + 1) * w)
            continue;
        end = ceil_div((done[i] + 1) * period, w);
        if (end < best_end) {
            best_end = end;
            best = i;
        }
    }
    BUG_IF(best < 0 || best_end <= t);
    return best;
}

void interleave_make(struct interleave *x, const int *units, int n)
{
    int divisor = 0, done[INTERLEAVE_SOURCES] = { 0 }, sum = 0;

    BUG_IF(n < 1 || n > INTERLEAVE_SOURCES);
    for (int i = 0; i < n; i++) {
        divisor = common_divisor(divisor, units[i]);
        sum += units[i];
    }
    BUG_IF(sum != INTERLEAVE_UNIT);
    *x = (struct interleave){ .n = n, .period = INTERLEAVE_UNIT / divisor };
    for (int i = 0; i < n; i++)
        x->count[i] = units[i] / divisor;
    x->source = mem_take((size_t)x->period);
    x->before = mem_take((size_t)x->period * sizeof *x->before);
    for (int t = 0; t < x->period; t++) {
        int i = due(x, done, t);

        x->source[t] = (unsigned char)i;
        x->before[t] = (uint16_t)done[i]++;
    }
}

void interleave_free(struct interleave *x)
{
    mem_give(x->source);
    mem_give(x->before);
    *x = (struct interleave){ 0 };
}

int interleave_draw(const struct interleave *x, int64_t t, int64_t *before)
{
    int64_t periods = t / x->period, place = t % x->period;
    int i = x->source[place];

    *before = periods * x->count[i] + x->before[place];
    return i;
}

int64_t interleave_count(const struct interleave *x, int64_t t, int source)
{
    int64_t n = t / x->period * x->count[source];

    for (int64_t i = 0; i < t % x->period; i++)
        n += x->source[i] == source;
    return n;
}
