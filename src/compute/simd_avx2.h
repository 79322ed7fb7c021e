/* Vectors of 8 floats, with FMA and F16C; see simd_avx512.h. */
#ifndef COMPUTE_SIMD_AVX2_H
#define COMPUTE_SIMD_AVX2_H
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>

/* What is between these two is compiled for the instruction set. */
#ifdef __clang__
/* clang-format off */
#define SIMD_BEGIN \
    _Pragma("clang attribute push(__attribute__((target(\"avx2,fma,f16c\"))), apply_to=function)")
/* clang-format on */
#define SIMD_END _Pragma("clang attribute pop")
#else
#define SIMD_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma,f16c\")")
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
static inline vec vec_load_bf16(const uint16_t *p)
{
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}
static inline void vec_store_bf16(uint16_t *p, vec x)
{
    __m256i u = _mm256_castps_si256(x), odd = _mm256_srli_epi32(u, 16);
    __m256i r = _mm256_and_si256(odd, _mm256_set1_epi32(1));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    r = _mm256_add_epi32(_mm256_add_epi32(u, r), _mm256_set1_epi32(0x7fff));
    r = _mm256_blendv_epi8(r, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
    r = _mm256_srli_epi32(r, 16);
    r = _mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0x08);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(r));
}
static inline vec vec_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void vec_store_f16(uint16_t *p, vec x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

SIMD_END
#endif
#endif
