/* Vectors of 8 floats, with FMA; see simd_avx512.h. */
#ifndef COMPUTE_SIMD_AVX2_H
#define COMPUTE_SIMD_AVX2_H
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>

/* What is between these two is compiled for the instruction set. */
#ifdef __clang__
#define SIMD_BEGIN \
    _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define SIMD_END _Pragma("clang attribute pop")
#else
#define SIMD_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define SIMD_END   _Pragma("GCC pop_options")
#endif

SIMD_BEGIN
enum { LANES = 8, PEAK_CHAINS = 12 };
typedef __m256 vec;

static inline vec vec_all(float x)
{
    return _mm256_set1_ps(x);
}
static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vec_store(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
}
static inline __m256i vec_mask(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_load_part(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vec_mask(n));
}
static inline void vec_store_part(float *p, vec x, int64_t n)
{
    _mm256_maskstore_ps(p, vec_mask(n), x);
}
static inline vec vec_keep(vec x, int64_t n)
{
    return _mm256_and_ps(x, _mm256_castsi256_ps(vec_mask(n)));
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
static inline vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}
static inline vec vec_sqrt(vec x)
{
    return _mm256_sqrt_ps(x);
}
static inline vec vec_round(vec x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* In two factors, so that neither leaves the range of exponents. */
static inline vec vec_scale(vec x, vec n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1),
            rest = _mm256_sub_epi32(whole, half);
    __m256i one = _mm256_set1_epi32(127);
    vec a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, one), 23));
    vec b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, one), 23));
    return x * a * b;
}

SIMD_END
#endif
#endif
