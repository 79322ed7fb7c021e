/* The tests of the op program that are not rows of its table of slots. */
#ifndef TESTS_OPS_CHECKS_H
#define TESTS_OPS_CHECKS_H
#include "cases.h"
enum { CHECKS = 20, CHECKS_EACH = 1 };
/* One TAP line; ops.c counts. */
void checks_report(int holds, const char *fmt, ...) LOCAL __attribute__((format(printf, 2, 3)));
/* of one instruction set and type: CHECKS_EACH tests */
void check_each(const struct ops *ops, const char *isa, enum dtype t) LOCAL;
void check_gradients(void) LOCAL; /* gradient_nrows tests */
void check_others(void) LOCAL;    /* CHECKS tests         */
#endif
