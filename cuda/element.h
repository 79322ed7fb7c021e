/* Elements of our kernels: float32, bfloat16 or float16 in memory, float in registers. */
#ifndef CUDA_ELEMENT_H
#define CUDA_ELEMENT_H
#include "cuda/dialect.h"
#include "cuda/queue.h"
#include <string.h>

/* widen, narrow: the elements of a 32-bit word as floats and back, to nearest, ties to even. */
template <class T> struct element;
template <> struct element<float> {
    typedef float type;
    enum { DTYPE = F32, PER_WORD = 1 };
    static __device__ __forceinline__ void widen(float *x, uint32_t word)
    {
        x[0] = __uint_as_float(word);
    }
    static __device__ __forceinline__ uint32_t narrow(const float *x)
    {
        return __float_as_uint(x[0]);
    }
};
template <> struct element<bf16> {
    typedef bf16 type;
    enum { DTYPE = BF16, PER_WORD = 2 };
    static __device__ __forceinline__ void widen(float *x, uint32_t word)
    {
        x[0] = __uint_as_float(word << 16);
        x[1] = __uint_as_float(word & 0xffff0000u);
    }
    static __device__ __forceinline__ uint32_t narrow(const float *x)
    {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x[0], x[1]);
        uint32_t word;
        memcpy(&word, &pair, sizeof word);
        return word;
    }
};
template <> struct element<f16> {
    typedef f16 type;
    enum { DTYPE = F16, PER_WORD = 2 };
    static __device__ __forceinline__ void widen(float *x, uint32_t word)
    {
        x[0] = __half2float(__ushort_as_half((unsigned short)(word & 0xffff)));
        x[1] = __half2float(__ushort_as_half((unsigned short)(word >> 16)));
    }
    static __device__ __forceinline__ uint32_t narrow(const float *x)
    {
        const __half2 pair = __floats2half2_rn(x[0], x[1]);
        uint32_t word;
        memcpy(&word, &pair, sizeof word);
        return word;
    }
};

/* ---- operands, on the host ---- */
/* Call f(element<T>()) for the type of an operation's elements. */
template <class F> static inline void with_element(enum dtype t, const char *what, F f)
{
    switch (t) {
    case F32:
        return f(element<float>());
    case BF16:
        return f(element<bf16>());
    case F16:
        return f(element<f16>());
    default:
        die(E_BUG, "cuda: %s got elements of type %s", what, dtype_name(t));
    }
}

/* NULL for OPERAND_NONE. */
template <class T> static inline T *elements(struct operand o)
{
    BUG_IF(o.p.p && o.t != (enum dtype)element<T>::DTYPE);
    return static_cast<T *>(static_cast<void *>(o.p.p));
}
template <class T> static inline T *values(dptr d)
{
    return static_cast<T *>(static_cast<void *>(d.p));
}

/* Whether all rows, ld elements apart, begin at a multiple of 16 bytes. */
static inline bool is_wide(struct operand o, int64_t ld)
{
    return reinterpret_cast<uintptr_t>(o.p.p) % 16 == 0 && ld * (int64_t)dtype_size(o.t) % 16 == 0;
}
#endif
