/* Element-wise sums and maxima of two arrays: the arithmetic of the MPI backend. */
#ifndef PARALLEL_COMM_SUM_H
#define PARALLEL_COMM_SUM_H
#include "parallel/comm.h"

/* out[i] = a[i] op b[i], in the element type. out may be a or b, else nothing overlaps. A maximum
 * keeps a NaN. */
typedef void comm_sum_fn(void *out, const void *a, const void *b, int64_t n);
/* NULL: this element type cannot be reduced. */
comm_sum_fn *comm_sum_of(enum dtype t, enum comm_op op) LOCAL;
#endif
