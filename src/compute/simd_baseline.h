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
static inline vec_bits vec_load_16(const uint16_t *p)
{
    return (vec_bits){ p[0], p[1], p[2], p[3] };
}
static inline void vec_store_16(uint16_t *p, vec_bits x)
{
    uint16_t h[LANES] = { (uint16_t)x[0], (uint16_t)x[1], (uint16_t)x[2], (uint16_t)x[3] };
    memcpy(p, h, sizeof h);
}
static inline vec vec_load_bf16(const uint16_t *p)
{
    return (vec)(vec_load_16(p) << 16);
}
static inline void vec_store_bf16(uint16_t *p, vec x)
{
    vec_bits u = (vec_bits)x, nan = x != x, r = u + 0x7fff + (u >> 16 & 1);
    r = (r & ~nan) | ((u | 0x400000) & nan);
    vec_store_16(p, r >> 16);
}
/* F32's exponent is 112 larger, and all ones for what is not finite. */
static inline vec vec_load_f16(const uint16_t *p)
{
    vec_bits h = vec_load_16(p), size = (h & 0x7fff) << 13, special = (h & 0x7c00) == 0x7c00;
    vec x = (vec)size * vec_all(0x1p112f);
    return (vec)((vec_bits)x | (special & 0x7f800000) | (h & 0x8000) << 16);
}
/* Below 2^-14 the result is subnormal: its last bit is that of a number in [0.5, 1), so adding 0.5
 * rounds it. */
static inline void vec_store_f16(uint16_t *p, vec x)
{
    vec_bits u = (vec_bits)x, size = u & 0x7fffffff, over = size >= 0x47800000,
             small = size < 0x38800000;
    vec_bits r = (size - (112 << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    vec_bits low = (vec_bits)((vec)(size & small) + vec_all(0.5f)) - 0x3f000000;
    vec_bits high = 0x7c00 | ((size > 0x7f800000) & (0x200 | (size >> 13 & 0x3ff)));
    r = (low & small) | (high & over) | (r & ~small & ~over);
    vec_store_16(p, r | (u >> 16 & 0x8000));
}
#endif
