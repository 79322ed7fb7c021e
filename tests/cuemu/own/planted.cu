/* planted NAME...: runs these cases with their bugs; planted without one: all cases without bugs.
 * Exits 3 when a result is wrong. */
#include "planted.h"
#include <cstdio>
#include <cstring>

int main(int argc, char **argv)
{
    int wrong = 0, found = 0;

    for (const auto *group : { &planted_barriers, &planted_copies, &planted_bounds, &planted_warps,
                               &planted_launches, &planted_streams })
        for (const planted &p : *group) {
            bool named = argc == 1;
            for (int i = 1; i < argc; i++)
                named = named || !strcmp(argv[i], p.name);
            found += named;
            if (named && !p.run(argc > 1)) {
                printf("wrong result: %s\n", p.name);
                wrong++;
            }
        }
    if (argc > 1 ? found != argc - 1 : found == 0) {
        printf("there is no such case\n");
        return 2;
    }
    return wrong ? 3 : 0;
}
