/* Device functions: atomics, mathematics, bits, loads with a hint. Exact where a device
 * approximates. */
#ifndef CUEMU_INTRINSICS_H
#define CUEMU_INTRINSICS_H
#include <cmath>
#include <cstdint>
#include <cstring>

/* ---- atomics: real ones, so that the race detector knows them ---- */
#define CUEMU_ATOMIC(name, T, expression)                                          \
    static inline T name(T *p, T v)                                                \
    {                                                                              \
        T old, next;                                                               \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                  \
        do                                                                         \
            next = expression;                                                     \
        while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_ACQ_REL, \
                                          __ATOMIC_ACQUIRE));                      \
        return old;                                                                \
    }
#define CUEMU_ATOMICS(T)                          \
    CUEMU_ATOMIC(atomicAdd, T, old + v)           \
    CUEMU_ATOMIC(atomicMax, T, old < v ? v : old) \
    CUEMU_ATOMIC(atomicMin, T, v < old ? v : old) \
    CUEMU_ATOMIC(atomicExch, T, v)
#define CUEMU_ATOMIC_BITS(T)                                                                   \
    CUEMU_ATOMIC(atomicAnd, T, old &v)                                                         \
    CUEMU_ATOMIC(atomicOr, T, old | v)                                                         \
    CUEMU_ATOMIC(atomicXor, T, old ^ v)                                                        \
    static inline T atomicCAS(T *p, T compare, T v)                                            \
    {                                                                                          \
        __atomic_compare_exchange(p, &compare, &v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
        return compare;                                                                        \
    }
CUEMU_ATOMICS(int)
CUEMU_ATOMICS(unsigned)
CUEMU_ATOMICS(unsigned long long)
CUEMU_ATOMIC(atomicAdd, float, old + v)
CUEMU_ATOMIC(atomicAdd, double, old + v)
CUEMU_ATOMIC(atomicExch, float, v)
CUEMU_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
CUEMU_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
CUEMU_ATOMIC_BITS(int)
CUEMU_ATOMIC_BITS(unsigned)
CUEMU_ATOMIC_BITS(unsigned long long)
#undef CUEMU_ATOMIC
#undef CUEMU_ATOMICS
#undef CUEMU_ATOMIC_BITS

/* ---- the same bits as another type ---- */
#define CUEMU_BITS(name, To, From)                        \
    static inline To name(From v)                         \
    {                                                     \
        To r;                                             \
        static_assert(sizeof r == sizeof v, "same size"); \
        __builtin_memcpy(&r, &v, sizeof r);               \
        return r;                                         \
    }
CUEMU_BITS(__uint_as_float, float, unsigned)
CUEMU_BITS(__float_as_uint, unsigned, float)
CUEMU_BITS(__int_as_float, float, int)
CUEMU_BITS(__float_as_int, int, float)
CUEMU_BITS(__longlong_as_double, double, long long)
CUEMU_BITS(__double_as_longlong, long long, double)
#undef CUEMU_BITS

/* ---- min, max: floating point as fminf, fmaxf (a NaN loses) ---- */
#define CUEMU_EXTREMA(T, A, B)            \
    static inline T max(A a, B b)         \
    {                                     \
        return (T)a > (T)b ? (T)a : (T)b; \
    }                                     \
    static inline T min(A a, B b)         \
    {                                     \
        return (T)a < (T)b ? (T)a : (T)b; \
    }
CUEMU_EXTREMA(int, int, int)
CUEMU_EXTREMA(unsigned, unsigned, unsigned)
CUEMU_EXTREMA(unsigned, int, unsigned)
CUEMU_EXTREMA(unsigned, unsigned, int)
CUEMU_EXTREMA(long, long, long)
CUEMU_EXTREMA(unsigned long, unsigned long, unsigned long)
CUEMU_EXTREMA(unsigned long, long, unsigned long)
CUEMU_EXTREMA(unsigned long, unsigned long, long)
CUEMU_EXTREMA(long long, long long, long long)
CUEMU_EXTREMA(unsigned long long, unsigned long long, unsigned long long)
#undef CUEMU_EXTREMA
#define CUEMU_EXTREMA(T, max_of, min_of) \
    static inline T max(T a, T b)        \
    {                                    \
        return max_of(a, b);             \
    }                                    \
    static inline T min(T a, T b)        \
    {                                    \
        return min_of(a, b);             \
    }
CUEMU_EXTREMA(float, fmaxf, fminf)
CUEMU_EXTREMA(double, fmax, fmin)
#undef CUEMU_EXTREMA

/* ---- mathematics; macros where the C library has functions of these names ---- */
#define __expf(x)          expf(x)
#define __exp10f(x)        exp10f(x)
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __log10f(x)        log10f(x)
#define __powf(x, y)       powf(x, y)
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __tanf(x)          tanf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)
#define rsqrtf(x)          (1.0f / sqrtf(x))
#define rsqrt(x)           (1.0 / sqrt((double)(x)))
#define __fdividef(a, b)   ((float)(a) / (float)(b))
#define __fdiv_rn(a, b)    ((float)(a) / (float)(b))
#define __fadd_rn(a, b)    ((float)(a) + (float)(b))
#define __fsub_rn(a, b)    ((float)(a) - (float)(b))
#define __fmul_rn(a, b)    ((float)(a) * (float)(b))
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __frcp_rn(x)       (1.0f / (float)(x))
#define __fsqrt_rn(x)      sqrtf(x)
#define __frsqrt_rn(x)     (1.0f / sqrtf(x))
#define __dadd_rn(a, b)    ((double)(a) + (double)(b))
#define __dmul_rn(a, b)    ((double)(a) * (double)(b))
#define __fma_rn(a, b, c)  fma(a, b, c)
#define __saturatef(x)     fminf(fmaxf(x, 0.0f), 1.0f)
#define __float2int_rn(x)  ((int)rintf(x))
#define __float2int_rz(x)  ((int)(float)(x))

/* ---- bits ---- */
#define __popc(x)      __builtin_popcount(x)
#define __popcll(x)    __builtin_popcountll(x)
#define __ffs(x)       __builtin_ffs((int)(x))
#define __clz(x)       ((x) ? __builtin_clz((unsigned)(x)) : 32)
#define __umulhi(a, b) ((unsigned)(((uint64_t)(unsigned)(a) * (unsigned)(b)) >> 32))
#define __umul64hi(a, b) \
    ((unsigned long long)(((unsigned __int128)(a) * (unsigned long long)(b)) >> 64))

/* ---- loads and stores with a cache hint ---- */
#define __ldg(p)     (*(p))
#define __ldcs(p)    (*(p))
#define __ldcg(p)    (*(p))
#define __stcs(p, v) ((void)(*(p) = (v)))
#define __stcg(p, v) ((void)(*(p) = (v)))
#endif
