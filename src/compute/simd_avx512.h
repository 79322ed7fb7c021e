/* Vectors of 16 floats. Arithmetic by the compiler's + - * /; the rest here. Parts load zeros
 * beyond n lanes. */
#ifndef COMPUTE_SIMD_AVX512_H
#define COMPUTE_SIMD_AVX512_H
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>

/* What is between these two is compiled for the instruction set. */
#ifdef __clang__
#define SIMD_BEGIN \
    _Pragma("clang attribute push(__attribute__((target(\"avx512f\"))), apply_to = function)")
#define SIMD_END _Pragma("clang attribute pop")
#else
#define SIMD_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f\")")
#define SIMD_END   _Pragma("GCC pop_options")
#endif

SIMD_BEGIN
enum { LANES = 16, PEAK_CHAINS = 24 };
typedef __m512 vec;

static inline vec vec_all(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void vec_store(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}
static inline __mmask16 vec_mask(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}
static inline vec vec_load_part(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(vec_mask(n), p);
}
static inline void vec_store_part(float *p, vec x, int64_t n)
{
    _mm512_mask_storeu_ps(p, vec_mask(n), x);
}
static inline vec vec_keep(vec x, int64_t n)
{
    return _mm512_maskz_mov_ps(vec_mask(n), x);
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* the second operand if either is not a number */
static inline vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}
static inline vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}
static inline vec vec_sqrt(vec x)
{
    return _mm512_sqrt_ps(x);
}
static inline vec vec_round(vec x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* x 2^n, n whole */
static inline vec vec_scale(vec x, vec n)
{
    return _mm512_scalef_ps(x, n);
}
/* LANES elements of two bytes */
static inline vec vec_load_bf16(const uint16_t *p)
{
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}
/* By integers: AVX512-BF16's own conversion flushes subnormals to zero. */
static inline void vec_store_bf16(uint16_t *p, vec x)
{
    __m512i u = _mm512_castps_si512(x), odd = _mm512_srli_epi32(u, 16);
    __m512i r = _mm512_and_si512(odd, _mm512_set1_epi32(1));
    r = _mm512_add_epi32(_mm512_add_epi32(u, r), _mm512_set1_epi32(0x7fff));
    r = _mm512_mask_or_epi32(r, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u,
                             _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16)));
}
static inline vec vec_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void vec_store_f16(uint16_t *p, vec x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

SIMD_END
#endif
#endif
