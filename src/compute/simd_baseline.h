/* Vectors of 4 floats for any machine; see simd_avx512.h. No FMA: two roundings. */
#ifndef COMPUTE_SIMD_BASELINE_H
#define COMPUTE_SIMD_BASELINE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4, PEAK_CHAINS = 6 };
typedef float vec __attribute__((vector_size(16)));
typedef int32_t vec_bits __attribute__((vector_size(16)));

static inline vec vec_all(float x)
{
    return (vec){ x, x, x, x };
}
static inline vec vec_load_part(const float *p, int64_t n)
{
    vec x = { 0, 0, 0, 0 };
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}
static inline void vec_store_part(float *p, vec x, int64_t n)
{
    memcpy(p, &x, (size_t)n * sizeof *p);
}
static inline vec vec_load(const float *p)
{
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void vec_store(float *p, vec x)
{
    memcpy(p, &x, sizeof x);
}
static inline vec vec_select(vec_bits mask, vec a, vec b)
{
    return (vec)(((vec_bits)a & mask) | ((vec_bits)b & ~mask));
}
static inline vec vec_keep(vec x, int64_t n)
{
    vec_bits lane = { 0, 1, 2, 3 };
    return vec_select(lane < (int32_t)n, x, vec_all(0));
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return a * b + c;
}
static inline vec vec_max(vec a, vec b)
{
    return vec_select(a > b, a, b);
}
static inline vec vec_min(vec a, vec b)
{
    return vec_select(a < b, a, b);
}
static inline vec vec_sqrt(vec x)
{
    return (vec){ sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3]) };
}
/* Adding 1.5 2^23 leaves no fraction bits; |x| < 2^22. */
static inline vec vec_round(vec x)
{
    return x + 12582912.0f - 12582912.0f;
}
static inline vec vec_scale(vec x, vec n)
{
    vec_bits whole = (vec_bits)(n + 12582912.0f) - 0x4b400000, half = whole >> 1,
             rest = whole - half;
    return x * (vec)((half + 127) << 23) * (vec)((rest + 127) << 23);
}
#endif
