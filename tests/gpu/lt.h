/* The best that cublasLt can do for one product, for comparison. */
#ifndef TESTS_GPU_LT_H
#define TESTS_GPU_LT_H
#include "tests/gpu/bench.h"

/* C [m, n] = op(A) op(B) (+ C), counted by columns. */
struct lt_product {
    struct operand a, b, c;
    int64_t lda, ldb, ldc, m, n, depth;
    int transpose_a, transpose_b, add;
};

/* Seconds of the fastest of cublasLt's suggestions with the workspace of the queue, each timed
 * once, the fastest then properly. C holds its result for one call from zero if `reset` zeroes C.
 * E_RESOURCE: it has none. */
enum status lt_best(struct bench *b, const struct lt_product *p, double *seconds, int *tried,
                    struct err *e) LOCAL;
#endif
