/* planted NAME...: runs these cases with their bugs, +NAME without; planted alone: all cases
 * without bugs. Exits 3 when a result is wrong. */
#include "planted.h"
#include <cstdio>
#include <cstring>

int main(int argc, char **argv)
{
    int wrong = 0, found = 0;

    for (const auto *group : { &planted_barriers, &planted_copies, &planted_bounds, &planted_warps,
                               &planted_launches, &planted_streams })
        for (const planted &p : *group) {
            bool named = argc == 1, bug = false;
            for (int i = 1; i < argc; i++) {
                bool without = argv[i][0] == '+';
                if (!strcmp(argv[i] + without, p.name)) {
                    named = true;
                    bug = !without;
                }
            }
            found += named;
            if (named && !p.run(bug)) {
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
