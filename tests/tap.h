/* Test programs speak TAP: tap_plan(n), n times tap_ok(...), return tap_done(). */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_planned, tap_made, tap_failed;

static inline void tap_plan(int n)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    tap_planned = n;
    printf("1..%d\n", n);
}

/* Returns cond, so that a test can print more on a failure (lines that begin with "# "). */
__attribute__((format(printf, 2, 3))) static inline int tap_ok(int cond, const char *fmt, ...)
{
    va_list ap;

    printf("%sok %d - ", cond ? "" : "not ", ++tap_made);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    tap_failed += !cond;
    return cond;
}

__attribute__((format(printf, 2, 3))) static inline void tap_skip(int n, const char *fmt, ...)
{
    char why[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    while (n-- > 0)
        printf("ok %d # SKIP %s\n", ++tap_made, why);
}

/* The whole program: "1..0 # SKIP why". For main: return tap_skip_all("no GPU"); */
static inline int tap_skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return 0;
}

/* Exit code: 0 only if everything planned was made and held. */
static inline int tap_done(void)
{
    if (tap_made != tap_planned)
        printf("# %d tests planned, %d made\n", tap_planned, tap_made);
    return tap_failed > 0 || tap_made != tap_planned;
}

/* Larger sizes for `make soak`. */
static inline int tap_soak(void)
{
    const char *s = getenv("PRETRAIN_SOAK");

    return s && strcmp(s, "1") == 0;
}
#endif
