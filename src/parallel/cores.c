#include "parallel/cores.h"

#include "base/arena.h"
#include "base/file.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has(const struct cores *set, int core)
{
    return core >= 0 && core < CORES_MAX && (set->word[core / 64] >> core % 64 & 1);
}

/* Is a lower hardware thread of the same core in the set? The list reads "0,64" or "0-1". */
static int is_sibling(const struct cores *set, int core)
{
    char path[128], *list = NULL;
    size_t n;
    int first, found = 0;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             core);
    if (!file_exists(path) || file_read_text(path, 4096, &list, &n, NULL) != OK)
        return 0;
    for (char *p = list; *p; p += *p != 0) {
        int from = first = (int)strtol(p, &p, 10);
        if (*p == '-')
            first = (int)strtol(p + 1, &p, 10);
        for (; from <= first && from < core; from++)
            found |= has(set, from);
        if (*p != ',')
            break;
    }
    mem_give(list);
    return found;
}

void cores_own(struct cores *set)
{
    struct cores all = { { 0 } };

    memset(set, 0, sizeof *set);
    if (sched_getaffinity(0, sizeof all, (cpu_set_t *)&all) != 0)
        return;
    for (int i = 0; i < CORES_MAX; i++)
        if (has(&all, i) && !is_sibling(&all, i))
            set->word[i / 64] |= (uint64_t)1 << i % 64;
}

int cores_count(const struct cores *set)
{
    int n = 0;

    for (int i = 0; i < COUNT_OF(set->word); i++)
        n += __builtin_popcountll(set->word[i]);
    return n;
}

int cores_nth(const struct cores *set, int n)
{
    for (int i = 0; i < CORES_MAX; i++)
        if (has(set, i) && n-- == 0)
            return i;
    return -1;
}

void cores_add(struct cores *set, const struct cores *more)
{
    for (int i = 0; i < COUNT_OF(set->word); i++)
        set->word[i] |= more->word[i];
}

int cores_pin(int core)
{
    struct cores one = { { 0 } };

    if (core < 0 || core >= CORES_MAX)
        return -1;
    one.word[core / 64] = (uint64_t)1 << core % 64;
    return sched_setaffinity(0, sizeof one, (cpu_set_t *)&one);
}
