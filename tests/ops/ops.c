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
} variants[] = { { "auto", 1 }, { "auto", 2 }, { "avx512", 1 }, { "avx2", 1 }, { "baseline", 1 } };
static const enum dtype narrow[] = { BF16, F16 };

int main(void)
{
    tap_plan(COUNT_OF(variants) * (op_nrows + 1) + COUNT_OF(narrow) * op_nrows + gradient_nrows +
             CHECKS);
    for (int i = 0; i < COUNT_OF(variants); i++) {
        const struct ops *ops;
        enum status st = ops_choose(&ops, "cpu", variants[i].isa, F32, NULL);
        if (st == OK) {
            trial_rows(&(struct trial_run){ .ops = ops,
                                            .variant = variants[i].isa,
                                            .t = F32,
                                            .report = checks_report,
                                            .threads = variants[i].threads });
            check_exp(ops, variants[i].isa);
        } else if (st == E_RESOURCE) {
            tap_skip(op_nrows + 1, "this machine has no %s", variants[i].isa);
        }
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
