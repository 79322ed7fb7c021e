#include "base/trace.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { TRACE_KEPT = 256 };

struct note {
    const char *what;
    int a, b;
    int64_t step;
    double at; /* seconds, clock_now */
};

static struct note notes[TRACE_KEPT];
static uint64_t notes_made;

void trace_note(const char *what, int a, int b, int64_t step)
{
    notes[notes_made++ % TRACE_KEPT] = (struct note){ what, a, b, step, clock_now() };
}

void trace_print(int last)
{
    uint64_t made = notes_made, n = made < TRACE_KEPT ? made : TRACE_KEPT;
    double now = clock_now();

    if (last >= 0 && n > (uint64_t)last)
        n = (uint64_t)last;
    for (uint64_t i = made - n; i < made; i++) {
        const struct note *t = &notes[i % TRACE_KEPT];

        dprintf(STDERR_FILENO, "  %10.6f s ago: step %" PRId64 ": %s %d %d\n", now - t->at, t->step,
                t->what, t->a, t->b);
    }
}
