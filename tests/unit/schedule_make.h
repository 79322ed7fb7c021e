/* A schedule for a test. */
#ifndef TESTS_UNIT_SCHEDULE_MAKE_H
#define TESTS_UNIT_SCHEDULE_MAKE_H
#include "schedule/schedule.h"
#include <stdio.h>

struct make {
    const char *name;
    int pp, chunks, mbs;
};

/* "=NAME": the forward-only list that goes with NAME */
static inline struct schedule build(struct make m)
{
    struct schedule s, f;
    struct err e = { "" };
    const char *name = m.name[0] == '=' ? m.name + 1 : m.name;

    if (schedule_build(&s, name, m.pp, m.chunks, m.mbs, &e) != OK)
        printf("# %s\n", e.text);
    if (m.name[0] != '=')
        return s;
    if (schedule_build_forward(&f, &s, m.mbs, &e) != OK)
        printf("# %s\n", e.text);
    schedule_free(&s);
    return f;
}

#endif
