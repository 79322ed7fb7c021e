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

/* Two-byte floats: each sum in float32, rounded to nearest even. */
#define LOOP_16(name, type, op)                                                     \
    static void name(void *out, const void *a, const void *b, int64_t n)            \
    {                                                                               \
        uint16_t *o = out;                                                          \
        const uint16_t *x = a, *y = b;                                              \
                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                           \
            float p = dtype_##type##_to_f32(x[i]), q = dtype_##type##_to_f32(y[i]); \
            o[i] = dtype_f32_to_##type(op(p, q));                                   \
        }                                                                           \
    }

LOOP_16(loop_sum_bf16, bf16, SUM)
LOOP_16(loop_sum_f16, f16, SUM)
LOOP_16(loop_max_bf16, bf16, MAX)
LOOP_16(loop_max_f16, f16, MAX)

static comm_sum_fn *const table[DTYPE_N][2] = {
    [F32] = { [COMM_SUM] = loop_sum_f32, [COMM_MAX] = loop_max_f32 },
    [F64] = { [COMM_SUM] = loop_sum_f64, [COMM_MAX] = loop_max_f64 },
    [BF16] = { [COMM_SUM] = loop_sum_bf16, [COMM_MAX] = loop_max_bf16 },
    [F16] = { [COMM_SUM] = loop_sum_f16, [COMM_MAX] = loop_max_f16 },
    [I32] = { [COMM_SUM] = loop_sum_i32, [COMM_MAX] = loop_max_i32 },
    [I64] = { [COMM_SUM] = loop_sum_i64, [COMM_MAX] = loop_max_i64 },
};

comm_sum_fn *comm_sum_of(enum dtype t, enum comm_op op)
{
    return table[t][op];
}
