/* Layers over stages. */
#include "schedule/schedule.h"

/* Layers cost the same, so giving each to the stage that is then cheapest is exact: no split has a
 * smaller largest stage, nor, beside it, a smaller second largest, and so on. Among equals the
 * latest stage takes the layer. */
void schedule_split_layers(int layers, int stages, double layer, double embedding, double head,
                           int *first)
{
    int *count = first + 1, left = layers, last = stages - 1;

    BUG_IF(layers < 1 || stages < 1 || stages > layers + 2);
    for (int i = 0; i < stages; i++) {
        count[i] = i > 0 && i < last; /* only the first and the last may stay empty */
        left -= count[i];
    }
    for (; left > 0; left--) {
        int best = 0;
        double least = 0;
        for (int i = 0; i < stages; i++) {
            double cost =
                (count[i] + 1) * layer + (i == 0 ? embedding : 0) + (i == last ? head : 0);
            if (i == 0 || cost <= least) {
                best = i;
                least = cost;
            }
        }
        count[best]++;
    }
    first[0] = 0;
    for (int i = 0; i < stages; i++)
        first[i + 1] += first[i];
}
