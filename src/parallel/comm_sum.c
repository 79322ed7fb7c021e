#include "parallel/comm_sum.h"

#include <string.h>

/* Inner loops of constant length, loads before stores: they become vector code at -O2 also. */
enum { LANES = 32 };

#define SUM(x, y) ((x) + (y))
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

#define LOOP(name, type, op)                                             \
    static void name(void *out, const void *a, const void *b, int64_t n) \
    {                                                                    \
        type *o = out;                                                   \
        const type *x = a, *y = b;                                       \
        int64_t i = 0;                                                   \
                                                                         \
        for (; i + LANES <= n; i += LANES) {                             \
            type lane[LANES];                                            \
            for (int k = 0; k < LANES; k++)                              \
                lane[k] = op(x[i + k], y[i + k]);                        \
            memcpy(o + i, lane, sizeof lane);                            \
        }                                                                \
        for (; i < n; i++)                                               \
            o[i] = op(x[i], y[i]);                                       \
    }

LOOP(loop_sum_f32, float, SUM)
LOOP(loop_sum_f64, double, SUM)
LOOP(loop_sum_i32, int32_t, SUM)
LOOP(loop_sum_i64, int64_t, SUM)
LOOP(loop_max_f32, float, MAX)
LOOP(loop_max_f64, double, MAX)
LOOP(loop_max_i32, int32_t, MAX)
LOOP(loop_max_i64, int64_t, MAX)

static comm_sum_fn *const table[DTYPE_N][2] = {
    [F32] = { [COMM_SUM] = loop_sum_f32, [COMM_MAX] = loop_max_f32 },
    [F64] = { [COMM_SUM] = loop_sum_f64, [COMM_MAX] = loop_max_f64 },
    [I32] = { [COMM_SUM] = loop_sum_i32, [COMM_MAX] = loop_max_i32 },
    [I64] = { [COMM_SUM] = loop_sum_i64, [COMM_MAX] = loop_max_i64 },
};

comm_sum_fn *comm_sum_of(enum dtype t, enum comm_op op)
{
    return table[t][op];
}
