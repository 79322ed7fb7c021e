/* The rows of the op test, run for one backend and one type of activations. */
#ifndef TESTS_OPS_TRIAL_H
#define TESTS_OPS_TRIAL_H
#include "cases.h"

struct trial_run {
    const struct ops *ops;
    const char *variant; /* for the reports: an instruction set, an order of threads */
    enum dtype t;
    int threads;
    int small; /* fewer tokens and poisons, for slow machines and detectors */
    /* one line of TAP */
    void (*report)(int holds, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
};
/* Against the reference, op_nrows reports: values, guards, repeated calls, requests for memory,
 * values that are not finite. */
void trial_rows(const struct trial_run *run) LOCAL;
#endif
