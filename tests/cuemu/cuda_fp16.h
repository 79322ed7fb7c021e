/* IEEE half precision as data: conversions, no arithmetic. Narrower than CUDA's, as cuda_bf16.h. */
#ifndef CUEMU_CUDA_FP16_H
#define CUEMU_CUDA_FP16_H
#include "cuda_runtime.h"

struct __half {
    unsigned short bits;
    __half() = default;
    explicit inline __half(float f);
    explicit inline operator float() const;
};

struct alignas(4) __half2 {
    __half x, y;
};
typedef __half half;
typedef __half2 half2;

static inline __half __ushort_as_half(unsigned short bits)
{
    __half r;
    r.bits = bits;
    return r;
}

static inline unsigned short __half_as_ushort(__half h)
{
    return h.bits;
}

/* To nearest, ties to even; 65520 and more become infinity; every NaN becomes CUDA's. */
static inline __half __float2half(float f)
{
    unsigned u = __float_as_uint(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff, r;

    if (f != f)
        return __ushort_as_half(0x7fff);
    if (a >= 0x477ff000)
        r = 0x7c00;
    else if (a >= 0x38800000) /* normal: 2^-14 and more */
        r = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    else /* adding 1/2 puts the subnormal's unit, 2^-24, at the last bit */
        r = __float_as_uint(__uint_as_float(a) + 0.5f) - 0x3f000000;
    return __ushort_as_half((unsigned short)(sign | r));
}
#define __float2half_rn(f) __float2half(f)

static inline float __half2float(__half h)
{
    unsigned sign = (unsigned)(h.bits & 0x8000) << 16, a = (unsigned)(h.bits & 0x7fff) << 13;

    if (a >= 0x7c00u << 13)
        return __uint_as_float(sign | 0x7f800000 | a);
    /* 2^112 moves the exponent's bias from 15 to 127; exact, for subnormals too */
    return __uint_as_float(sign | __float_as_uint(__uint_as_float(a) * 0x1p112f));
}

inline __half::__half(float f) : bits(__float2half(f).bits)
{
}

inline __half::operator float() const
{
    return __half2float(*this);
}

static inline __half2 __halves2half2(__half x, __half y)
{
    return __half2{ x, y };
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return __half2{ __float2half(x), __float2half(y) };
}

static inline __half2 __float22half2_rn(float2 v)
{
    return __floats2half2_rn(v.x, v.y);
}

static inline float2 __half22float2(__half2 v)
{
    return make_float2((float)v.x, (float)v.y);
}

static inline float __low2float(__half2 v)
{
    return (float)v.x;
}

static inline float __high2float(__half2 v)
{
    return (float)v.y;
}
#endif
