/* The tests of the op program that are not rows of its table of slots. */
#ifndef TESTS_OPS_CHECKS_H
#define TESTS_OPS_CHECKS_H
#include "cases.h"
enum { CHECKS = 19 };
/* One TAP line; ops.c counts. */
void checks_report(int holds, const char *fmt, ...) LOCAL __attribute__((format(printf, 2, 3)));
void check_exp(const struct ops *ops, const char *isa) LOCAL; /* 1 test */
void check_gradients(void) LOCAL;                             /* gradient_nrows tests */
void check_others(void) LOCAL;                                /* CHECKS tests         */
#endif
