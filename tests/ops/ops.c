/* Every slot of ops.h: the reference against the CPU backend and each of its instruction sets,
 * guarded buffers, repeated calls, values that are not numbers; gradients against central
 * differences in float64 on the reference. */
#include <stdarg.h>
#include <stdio.h>

#include "../tap.h"
#include "checks.h"
#include "trial.h"

void checks_report(int holds, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tap_ok(holds, "%s", text);
}

static const struct {
    const char *isa;
    int threads;
} variants[] = { { "auto", 2 }, { "avx512", 1 }, { "avx2", 1 }, { "baseline", 1 } };
static const enum dtype types[] = { F32, BF16, F16 }, narrow[] = { BF16, F16 };

static void test_variant(const char *isa, int threads)
{
    const struct ops *ops;
    enum status st = ops_choose(&ops, "cpu", isa, F32, NULL);
    int tests = COUNT_OF(types) * (op_nrows + CHECKS_EACH);
    if (st == E_RESOURCE) {
        tap_skip(tests, "this machine has no %s", isa);
    }
    for (int k = 0; st == OK && k < COUNT_OF(types); k++) {
        trial_rows(&(struct trial_run){ .ops = ops,
                                        .variant = isa,
                                        .t = types[k],
                                        .report = checks_report,
                                        .threads = threads });
        check_each(ops, isa, types[k]);
    }
}

int main(void)
{
    tap_plan(COUNT_OF(variants) * COUNT_OF(types) * (op_nrows + CHECKS_EACH) +
             COUNT_OF(narrow) * op_nrows + gradient_nrows + CHECKS);
    for (int i = 0; i < COUNT_OF(variants); i++) {
        test_variant(variants[i].isa, variants[i].threads);
    }
    for (int i = 0; i < COUNT_OF(narrow); i++) {
        trial_rows(&(struct trial_run){ .ops = &ops_ref,
                                        .variant = "plain loops",
                                        .t = narrow[i],
                                        .threads = 1,
                                        .small = 1,
                                        .report = checks_report });
    }
    check_gradients();
    check_others();
    return tap_done();
}
