/* FlashAttention-2 (Dao 2023), forward: 4 warps, each 32 queries; keys and values in turn through
 * one tile each, the next one on its way while the other is used. */
#include "cuda/attention_tile.h"

template <class T, int D> struct forward {
    enum {
        WARPS = 4,
        MT = 2,
        THREADS = WARPS * 32,
        QUERIES = WARPS * MT * 16,
        KEYS = 64,
        LD = D + TILE_PAD,
        BYTES = (QUERIES + 2 * KEYS) * LD * (int)sizeof(T)
    };
};

template <int MT> struct forward_rows { /* of one thread: largest score, sum of its own columns */
    float top[MT][2], sum[MT][2];
};

template <int MT, int M>
static __device__ __forceinline__ void rows_begin(struct forward_rows<MT> &r, float (&o)[MT][M][4])
{
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        r.top[n / 2][n % 2] = -INFINITY;
        r.sum[n / 2][n % 2] = 0;
    }
    tile_clear(o);
}

/* Scores of keys that a row does not see become -inf. seen: of the warp's rows; key: the tile's
 * first. */
template <int MT, int N>
static __device__ __forceinline__ void rows_mask(float (&s)[MT][N][4], const struct span *seen,
                                                 int key)
{
    key += ((int)threadIdx.x & 3) * 2;
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        const struct span row = seen[((int)threadIdx.x & 31) / 4 + n * 8];
#pragma unroll
        for (int j = 0; j < N * 2; j++) {
            const int at = key + j / 2 * 8 + j % 2;
            if (at < row.first || at >= row.end) {
                s[n / 2][j / 2][n % 2 * 2 + j % 2] = -INFINITY;
            }
        }
    }
}

/* The online softmax: s becomes exp(scale (s - top)), sums and o follow the new top, which is the
 * old one for most tiles. scale is that of base 2 and positive. */
template <int MT, int N, int M>
static __device__ __forceinline__ void rows_weigh(float (&s)[MT][N][4], float (&o)[MT][M][4],
                                                  struct forward_rows<MT> &r, float scale)
{
    float base[MT][2], shrink[MT * 2];
    bool same = true;
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        float top = r.top[n / 2][n % 2];
#pragma unroll
        for (int j = 0; j < N * 2; j++) {
            top = fmaxf(top, s[n / 2][j / 2][n % 2 * 2 + j % 2]);
        }
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        top = fmaxf(top, r.top[n / 2][n % 2]);
        base[n / 2][n % 2] = top == -INFINITY ? 0 : top * scale;
        same = same && top == r.top[n / 2][n % 2];
        shrink[n] = exp2f(r.top[n / 2][n % 2] * scale - base[n / 2][n % 2]);
        r.top[n / 2][n % 2] = top;
    }
    if (!__all_sync(0xffffffffu, same)) {
#pragma unroll
        for (int n = 0; n < MT * 2; n++) {
            r.sum[n / 2][n % 2] *= shrink[n];
#pragma unroll
            for (int j = 0; j < M * 2; j++) {
                o[n / 2][j / 2][n % 2 * 2 + j % 2] *= shrink[n];
            }
        }
    }
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
#pragma unroll
        for (int j = 0; j < N * 2; j++) {
            float &x = s[n / 2][j / 2][n % 2 * 2 + j % 2];
            x = exp2f(x * scale - base[n / 2][n % 2]);
            r.sum[n / 2][n % 2] += x;
        }
    }
}

/* The warp's rows of o and lse, first: its first query. The partial lse is read by four threads and
 * written by one of them. */
template <class T, int D, int MT>
static __device__ __forceinline__ void rows_end(const float (&o)[MT][D / 8][4],
                                                const struct forward_rows<MT> &r,
                                                const struct span *seen,
                                                const struct attention_call &c, int b, int h,
                                                int first)
{
    const int row = ((int)threadIdx.x & 31) / 4, rows = c.s.Tq - first;
    const int64_t token = (int64_t)b * c.s.Tq + first;
    float *lse = c.lse + (int64_t)h * c.s.B * c.s.Tq + token;
    float before[MT * 2];
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        before[n] = c.more && row + n * 8 < rows ? lse[row + n * 8] : 0;
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        const int m = n / 2, i = n % 2, at = row + n * 8;
        const bool sees = seen[at].first < seen[at].end;
        float sum = r.sum[m][i];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (at < rows && (sees || !c.more)) {
            const struct attention_mix mix =
                attention_finish(r.top[m][i] * (float)c.s.scale, sum, sees, c.more, before[n]);
            T *out = static_cast<T *>(c.o) + (token + at) * c.s.ldo + (int64_t)h * D;
            tile_store(out, o[m], i, c.more, mix.keep, mix.take);
            if ((threadIdx.x & 3) == 0) {
                lse[at] = mix.lse;
            }
        }
    }
}

template <class T, int D>
static __global__ void __launch_bounds__(forward<T, D>::THREADS)
    attention_forward_kernel(struct attention_call c)
{
    typedef struct forward<T, D> F;
    const int b = (int)blockIdx.z, h = (int)blockIdx.y,
              row = (int)threadIdx.x / 32 * F::MT * 16, /* the warp's first */
        tile = (int)(gridDim.x - 1 - blockIdx.x);
    const int q0 = tile * F::QUERIES, q1 = min(q0 + F::QUERIES, c.s.Tq);
    SHARED_ARRAY(struct span, spans, F::QUERIES);
    DYN_SHARED(T, shared);
    T *sq = shared, *sk = sq + F::QUERIES * F::LD, *sv = sk + F::KEYS * F::LD;
    const struct span seen = attention_keys(c, b, q0, q1);
    int key = seen.first / F::KEYS * F::KEYS;
    const int64_t keys = (int64_t)b * c.s.Tk, column = (int64_t)(h / (c.s.H / c.s.G)) * D;
    struct forward_rows<F::MT> rows;
    float o[F::MT][D / 8][4];

    tile_load<T, D, F::QUERIES, F::THREADS>(sq, c.q, c.s.ldq, (int64_t)b * c.s.Tq + q0,
                                            (int64_t)h * D, q1 - q0);
    if (key < seen.end) {
        tile_load<T, D, F::KEYS, F::THREADS>(sk, c.k, c.s.ldkv, keys + key, column, c.s.Tk - key);
    }
    cp_async_commit();
    rows_begin(rows, o);
    for (int i = (int)threadIdx.x; i < F::QUERIES; i += F::THREADS) {
        const int query = min(q0 + i, c.s.Tq - 1);
        spans[i] = attention_keys(c, b, query, query + 1);
    }
    for (; key < seen.end; key += F::KEYS) {
        float s[F::MT][F::KEYS / 8][4];
        cp_async_wait<0>();
        __syncthreads(); /* keys are here, the last values have been used */
        tile_load<T, D, F::KEYS, F::THREADS>(sv, c.v, c.s.ldkv, keys + key, column, c.s.Tk - key);
        cp_async_commit();
        tile_scores<T, D>(s, sq + row * F::LD, sk);
        cp_async_wait<0>();
        __syncthreads(); /* values are here, the keys have been used */
        if (key + F::KEYS < seen.end) {
            tile_load<T, D, F::KEYS, F::THREADS>(sk, c.k, c.s.ldkv, keys + key + F::KEYS, column,
                                                 c.s.Tk - key - F::KEYS);
        }
        cp_async_commit();
        if (key < spans[F::QUERIES - 1].first || key + F::KEYS > spans[0].end) {
            rows_mask(s, spans + row, key);
        }
        rows_weigh(s, o, rows, (float)(c.s.scale * 1.4426950408889634)); /* log2(e) */
        tile_add<T, D>(o, s, sv);
    }
    cp_async_wait<0>();
    __syncthreads(); /* spans are here, also if there was no key */
    rows_end<T, D>(o, rows, spans + row, c, b, h, q0 + row);
}

template <class T, int D> static void queue_forward(struct queue *q, const struct attention_call *c)
{
    typedef struct forward<T, D> F;
    attention_launch(q, c, attention_forward_kernel<T, D>, c->s.Tq, F::QUERIES, c->s.H, F::THREADS,
                     F::BYTES, "attention");
}

void attention_forward_tiled(struct queue *q, const struct attention_call *c, enum dtype t)
{
    if (t == BF16) {
        c->s.K == 64 ? queue_forward<bf16, 64>(q, c) : queue_forward<bf16, 128>(q, c);
    } else {
        c->s.K == 64 ? queue_forward<f16, 64>(q, c) : queue_forward<f16, 128>(q, c);
    }
}
