#include "base/trace.h"

#include "base/clock.h"
#include "tests/tap.h"

#include <unistd.h>

/* Lines of trace_print(last), the first and the last of them. */
static int printed(int last, char *first, char *end)
{
    FILE *f = tmpfile();
    int keep = dup(STDERR_FILENO), n = 0;
    char line[256];

    if (!f)
        return -1;
    dup2(fileno(f), STDERR_FILENO);
    trace_print(last);
    dup2(keep, STDERR_FILENO);
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        if (n++ == 0)
            strcpy(first, line);
        strcpy(end, line);
    }
    fclose(f);
    return n;
}

int main(void)
{
    char first[256], end[256];
    double before = clock_now();

    tap_plan(5);
    tap_ok(printed(16, first, end) == 0, "nothing yet");
    for (int i = 0; i < 1000; i++)
        trace_note("act", i, -i, 5000000000);
    tap_ok(printed(16, first, end) == 16 && strstr(first, "act 984 -984\n"), "the last 16");
    tap_ok(strstr(end, "step 5000000000: act 999 -999\n") != NULL, "the newest is last");
    tap_ok(printed(1000000, first, end) < 1000, "old ones are forgotten");
    clock_sleep(0.02);
    tap_ok(clock_now() - before >= 0.02 && clock_now() - before < 60, "the clock goes on");
    return tap_done();
}
