/* RoPE: a thread rotates the same pair of packs in some heads of a row. */
#include "cuda/launch.h"
#include "cuda/pack.h"
#include "cuda/slots.h"

enum { HEADS = 4 }; /* of a thread: all its packs are in flight at once */

template <class T>
static __global__ void __launch_bounds__(FLAT_THREADS)
    rope_kernel(T *x, int64_t ld, const float *__restrict__ table,
                const int32_t *__restrict__ position, unsigned threads, int heads, int64_t K,
                float sign, bool wide, bool wide_table)
{
    enum { N = pack_size<T> };
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t middle = K / 2;
    const unsigned packs = (unsigned)((middle + N - 1) / N);
    const unsigned groups = (unsigned)(heads + HEADS - 1) / HEADS;
    if (id >= threads) {
        return;
    }
    const int64_t i = (int64_t)(id % packs) * N, left = middle - i;
    const int first = (int)(id / packs % groups) * HEADS;
    const int64_t t = id / packs / groups;
    T *const low = x + t * ld + first * K + i;
    const float *const turn = table + position[t] * K + i;
    const floats<N> c = pack_widen(pack_load<N>(turn, left, wide_table));
    const floats<N> s = pack_widen(pack_load<N>(turn + middle, left, wide_table));
    pack<T, N> a[HEADS], b[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const int64_t some = first + h < heads ? left : 0;
        a[h] = pack_load<N>(low + h * K, some, wide);
        b[h] = pack_load<N>(low + h * K + middle, some, wide);
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const int64_t some = first + h < heads ? left : 0;
        floats<N> p = pack_widen(a[h]), r = pack_widen(b[h]);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float u = p.x[j], v = r.x[j], sine = sign * s.x[j];
            p.x[j] = u * c.x[j] - v * sine;
            r.x[j] = v * c.x[j] + u * sine;
        }
        pack_store<N>(low + h * K, pack_narrow<T>(p), some, wide);
        pack_store<N>(low + h * K + middle, pack_narrow<T>(r), some, wide);
    }
}

extern "C" void cuda_rope(struct queue *q, struct operand x, int64_t ld, struct operand table,
                          dptr position, int64_t T, int heads, int64_t K, int sign)
{
    if (T == 0 || heads == 0) {
        return;
    }
    with_element(x.t, "rope", [=](auto type) {
        typedef typename decltype(type)::type E;
        const int64_t threads = T * ceil_div(heads, HEADS) * ceil_div(K / 2, pack_size<E>);
        BUG_IF(threads > INT32_MAX);
        LAUNCH(rope_kernel<E>, dim3((unsigned)ceil_div(threads, FLAT_THREADS)), dim3(FLAT_THREADS),
               0, q->stream, elements<E>(x), ld, elements<float>(table), values<int32_t>(position),
               (unsigned)threads, heads, K, (float)sign, is_wide(x, ld) && is_wide(x, K / 2),
               is_wide(table, K / 2));
    });
    cuda_check(cudaGetLastError(), "rope");
}
