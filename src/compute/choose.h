/* Which table of operations a run uses. */
#ifndef COMPUTE_CHOOSE_H
#define COMPUTE_CHOOSE_H
#include "compute/ops.h"

/* The table of a backend with its holes filled from the reference (CPU). isa: "auto", "avx512",
 * "avx2", "baseline". E_RESOURCE if the machine or the build lacks it, with the cure; whether there
 * is a device for "cuda" is not looked at (probe does). t: the run's dtype (float64 runs on the
 * reference only: E_INPUT). */
enum status ops_choose(const struct ops **ops, const char *backend, const char *isa, enum dtype t,
                       struct err *e) LOCAL;
extern const struct ops ops_ref;          /* plain loops: the oracle. Complete */
extern const struct ops ops_cpu;          /* fast; a NULL slot is taken from ops_ref */
const struct ops *ops_device(void) LOCAL; /* the build's backend with devices; NULL: none */
const char *ops_describe(void) LOCAL;     /* of the chosen: "oneDNN 2.6.3 (avx512)" */
#endif
