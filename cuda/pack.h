/* Elements move in packs of 16 bytes where the operand allows it, else one by one in the same
 * order, so that results do not depend on alignment. */
#ifndef CUDA_PACK_H
#define CUDA_PACK_H
#include "cuda/element.h"

/* Elements of a pack of types A and B: 16 bytes of the narrower. */
template <class A, class B = A>
constexpr int pack_size = (int)(16 / (sizeof(A) < sizeof(B) ? sizeof(A) : sizeof(B)));

/* As they lie in memory: loads stay in flight until the first use as floats. */
template <class T, int N>
struct __attribute__((aligned(N * sizeof(T) < 16 ? N * sizeof(T) : 16), may_alias)) pack {
    uint32_t word[N / element<T>::PER_WORD];
};

/* p[0 .. left-1], zeros after them; wide: p is a multiple of 16 bytes */
template <int N, class T>
static __device__ __forceinline__ pack<T, N> pack_load(const T *p, int64_t left, bool wide)
{
    enum { PER_WORD = element<T>::PER_WORD };
    pack<T, N> a;
    if (wide && left >= N) {
        return *reinterpret_cast<const pack<T, N> *>(p);
    }
#pragma unroll
    for (int w = 0; w < N / PER_WORD; w++) {
        T part[PER_WORD] = {};
#pragma unroll
        for (int i = 0; i < PER_WORD; i++) {
            if (w * PER_WORD + i < left) {
                part[i] = p[w * PER_WORD + i];
            }
        }
        memcpy(&a.word[w], part, sizeof a.word[w]);
    }
    return a;
}

template <int N, class T>
static __device__ __forceinline__ void pack_store(T *p, const pack<T, N> &a, int64_t left,
                                                  bool wide)
{
    enum { PER_WORD = element<T>::PER_WORD };
    if (wide && left >= N) {
        *reinterpret_cast<pack<T, N> *>(p) = a;
        return;
    }
#pragma unroll
    for (int w = 0; w < N / PER_WORD; w++) {
        T part[PER_WORD];
        memcpy(part, &a.word[w], sizeof a.word[w]);
#pragma unroll
        for (int i = 0; i < PER_WORD; i++) {
            if (w * PER_WORD + i < left) {
                p[w * PER_WORD + i] = part[i];
            }
        }
    }
}

template <int N> struct floats {
    float x[N];
};
template <class T, int N>
static __device__ __forceinline__ floats<N> pack_widen(const pack<T, N> &a)
{
    enum { PER_WORD = element<T>::PER_WORD };
    floats<N> f;
#pragma unroll
    for (int w = 0; w < N / PER_WORD; w++) {
        element<T>::widen(f.x + w * PER_WORD, a.word[w]);
    }
    return f;
}

template <class T, int N>
static __device__ __forceinline__ pack<T, N> pack_narrow(const floats<N> &f)
{
    enum { PER_WORD = element<T>::PER_WORD };
    pack<T, N> a;
#pragma unroll
    for (int w = 0; w < N / PER_WORD; w++) {
        a.word[w] = element<T>::narrow(f.x + w * PER_WORD);
    }
    return a;
}
#endif
