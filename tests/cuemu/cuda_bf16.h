/* bfloat16 as data: conversions, no arithmetic. Narrower than CUDA's: nothing converts implicitly.
 */
#ifndef CUEMU_CUDA_BF16_H
#define CUEMU_CUDA_BF16_H
#include "cuda_runtime.h"

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    explicit inline __nv_bfloat16(float f);
    explicit operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 r;
    r.bits = bits;
    return r;
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b)
{
    return b.bits;
}

/* To nearest, ties to even; every NaN becomes CUDA's. */
static inline __nv_bfloat16 __float2bfloat16(float f)
{
    unsigned u = __float_as_uint(f);
    if (f != f)
        return __ushort_as_bfloat16(0x7fff);
    return __ushort_as_bfloat16((unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16));
}
#define __float2bfloat16_rn(f) __float2bfloat16(f)

inline __nv_bfloat16::__nv_bfloat16(float f) : bits(__float2bfloat16(f).bits)
{
}

static inline float __bfloat162float(__nv_bfloat16 b)
{
    return (float)b;
}

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162{ x, y };
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162{ __float2bfloat16(x), __float2bfloat16(y) };
}

static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return __floats2bfloat162_rn(v.x, v.y);
}

static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return make_float2((float)v.x, (float)v.y);
}

static inline float __low2float(__nv_bfloat162 v)
{
    return (float)v.x;
}

static inline float __high2float(__nv_bfloat162 v)
{
    return (float)v.y;
}
#endif
