/* Layers over stages, against all splits. */
#include "schedule/schedule.h"
#include "tests/tap.h"

#include <math.h>

static double largest(int stages, const double cost[3], const int *first)
{
    double most = 0;

    for (int i = 0; i < stages; i++)
        most = fmax(most, (first[i + 1] - first[i]) * cost[0] + (i == 0 ? cost[1] : 0) +
                              (i == stages - 1 ? cost[2] : 0));
    return most;
}

/* The cheapest largest stage over all splits. */
static double best_split(int layers, int stages, const double cost[3], int at, int *first)
{
    double best = INFINITY;
    int least = at > 0 && at < stages - 1;

    if (at == stages - 1) {
        first[stages] = layers;
        return largest(stages, cost, first);
    }
    for (int n = least; first[at] + n <= layers; n++) {
        first[at + 1] = first[at] + n;
        best = fmin(best, best_split(layers, stages, cost, at + 1, first));
    }
    return best;
}

static int split_is(int layers, int stages, double embedding, double head, const char *want)
{
    int first[8];
    char text[64] = "";

    schedule_split_layers(layers, stages, 1, embedding, head, first);
    for (int i = 0; i < stages; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "",
                 first[i + 1] - first[i]);
    return tap_ok(!strcmp(text, want), "%d layers, embedding %g, head %g: %s", layers, embedding,
                  head, text);
}

static void test_split(void)
{
    static const double costs[][3] = { { 1, 0, 0 },   { 1, 0.4, 2.2 }, { 1, 5, 0.5 },
                                       { 0.3, 1, 1 }, { 2, 0.1, 9 },   { 1, 1, 1 } };
    int bad = 0, tried = 0;

    for (int c = 0; c < COUNT_OF(costs); c++)
        for (int layers = 1; layers <= 9; layers++)
            for (int stages = 1; stages <= 6 && stages <= layers + 2; stages++) {
                int first[8], any[8] = { 0 };
                schedule_split_layers(layers, stages, costs[c][0], costs[c][1], costs[c][2], first);
                tried++;
                bad += largest(stages, costs[c], first) >
                           best_split(layers, stages, costs[c], 0, any) + 1e-12 ||
                       first[0] != 0 || first[stages] != layers;
                for (int i = 1; i < stages - 1; i++)
                    bad += first[i + 1] <= first[i];
            }
    tap_ok(bad == 0, "%d splits are the cheapest, and only the ends may be empty", tried);
    split_is(1, 3, 0.1, 0.5, "0 1 0");
    split_is(3, 4, 0.1, 2, "1 1 1 0");
    split_is(5, 4, 0, 0, "1 1 1 2");
    split_is(8, 4, 0, 0, "2 2 2 2");
    split_is(8, 4, 0.1, 2.2, "2 3 3 0");
    split_is(5, 3, 0, 10, "2 3 0");
    split_is(4, 1, 1, 1, "4");
}

int main(void)
{
    tap_plan(8);
    test_split();
    return tap_done();
}
