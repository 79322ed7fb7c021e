/* FlashAttention-2 (Dao 2023), backward, in a fixed order of summation: one kernel for dq, over
 * blocks of queries, and one for dk and dv, over blocks of keys; each computes the weights anew. */
#include "cuda/attention_tile.h"

static const float LOG2_E = 1.4426950408889634f;

template <class T, int D> struct grad_query {
    enum {
        WARPS = 4,
        MT = 2,
        THREADS = WARPS * 32,
        QUERIES = WARPS * MT * 16,
        KEYS = D <= 64 ? 64 : 32,
        LD = D + TILE_PAD,
        STAGE = 2 * KEYS * LD, /* keys, values */
        BYTES = (2 * QUERIES * LD + 2 * STAGE) * (int)sizeof(T)
    };
};

/* lse to base 2; +inf, so that its weights are 0, for a query that sees no key */
static __device__ __forceinline__ float grad_lse(const struct attention_call &c, int64_t stat,
                                                 struct span seen)
{
    return seen.first < seen.end ? c.lse[stat] * LOG2_E : INFINITY;
}

struct grad_row { /* a query as the rows of the scores need it */
    struct span seen;
    float lse, delta;
};

/* s becomes p * (dp - delta) */
template <int MT, int N>
static __device__ __forceinline__ void rows_grad(float (&s)[MT][N][4], const float (&dp)[MT][N][4],
                                                 const struct grad_row *rows, float scale)
{
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        const struct grad_row row = rows[((int)threadIdx.x & 31) / 4 + n * 8];
#pragma unroll
        for (int j = 0; j < N * 2; j++) {
            float &x = s[n / 2][j / 2][n % 2 * 2 + j % 2];
            x = exp2f(x * scale - row.lse) * (dp[n / 2][j / 2][n % 2 * 2 + j % 2] - row.delta);
        }
    }
}

/* Scores of keys that a query does not see become -inf; key: the tile's first. */
template <int MT, int N>
static __device__ __forceinline__ void rows_mask(float (&s)[MT][N][4], const struct grad_row *rows,
                                                 int key)
{
    key += ((int)threadIdx.x & 3) * 2;
#pragma unroll
    for (int n = 0; n < MT * 2; n++) {
        const struct span seen = rows[((int)threadIdx.x & 31) / 4 + n * 8].seen;
#pragma unroll
        for (int j = 0; j < N * 2; j++) {
            const int at = key + j / 2 * 8 + j % 2;
            if (at < seen.first || at >= seen.end) {
                s[n / 2][j / 2][n % 2 * 2 + j % 2] = -INFINITY;
            }
        }
    }
}

/* Keys and after them their values, to `to`. */
template <class T, int D, class F>
static __device__ __forceinline__ void grad_load(T *to, const struct attention_call &c, int64_t key,
                                                 int64_t column, int keys)
{
    tile_load<T, D, F::KEYS, F::THREADS>(to, c.k, c.s.ldkv, key, column, keys);
    tile_load<T, D, F::KEYS, F::THREADS>(to + F::KEYS * F::LD, c.v, c.s.ldkv, key, column, keys);
}

template <class T, int D>
static __global__ void __launch_bounds__(grad_query<T, D>::THREADS)
    attention_grad_query_kernel(struct attention_call c)
{
    typedef struct grad_query<T, D> F;
    const int b = (int)blockIdx.z, h = (int)blockIdx.y,
              row = (int)threadIdx.x / 32 * F::MT * 16, /* the warp's first */
        q0 = (int)(gridDim.x - 1 - blockIdx.x) * F::QUERIES, q1 = min(q0 + F::QUERIES, c.s.Tq);
    const int64_t token = (int64_t)b * c.s.Tq + q0, head = (int64_t)h * D;
    SHARED_ARRAY(struct grad_row, rows, F::QUERIES);
    DYN_SHARED(T, shared);
    T *sq = shared, *sdout = sq + F::QUERIES * F::LD, *stage = sdout + F::QUERIES * F::LD;
    const struct span seen = attention_keys(c, b, q0, q1);
    const int64_t keys = (int64_t)b * c.s.Tk, kv = (int64_t)(h / (c.s.H / c.s.G)) * D;
    int key = seen.first / F::KEYS * F::KEYS, turn = 0;
    float dq[F::MT][D / 8][4];

    tile_load<T, D, F::QUERIES, F::THREADS>(sq, c.q, c.s.ldq, token, head, q1 - q0);
    tile_load<T, D, F::QUERIES, F::THREADS>(sdout, c.dout, c.s.ldo, token, head, q1 - q0);
    if (key < seen.end) {
        grad_load<T, D, F>(stage, c, keys + key, kv, c.s.Tk - key);
    }
    cp_async_commit();
    for (int i = (int)threadIdx.x; i < F::QUERIES; i += F::THREADS) {
        const int query = min(q0 + i, c.s.Tq - 1);
        const int64_t stat = ((int64_t)h * c.s.B + b) * c.s.Tq + query;
        const struct span sees = attention_keys(c, b, query, query + 1);
        rows[i] = { sees, grad_lse(c, stat, sees), c.delta[stat] };
    }
    tile_clear(dq);
    for (; key < seen.end; key += F::KEYS, turn ^= 1) {
        float s[F::MT][F::KEYS / 8][4], dp[F::MT][F::KEYS / 8][4];
        const T *sk = stage + turn * F::STAGE, *sv = sk + F::KEYS * F::LD;
        cp_async_wait<0>();
        __syncthreads(); /* this stage is here, the other one has been used */
        if (key + F::KEYS < seen.end) {
            grad_load<T, D, F>(stage + (turn ^ 1) * F::STAGE, c, keys + key + F::KEYS, kv,
                               c.s.Tk - key - F::KEYS);
        }
        cp_async_commit();
        tile_scores<T, D>(s, sq + row * F::LD, sk);
        if (key < rows[F::QUERIES - 1].seen.first || key + F::KEYS > rows[0].seen.end) {
            rows_mask(s, rows + row, key);
        }
        tile_scores<T, D>(dp, sdout + row * F::LD, sv);
        rows_grad(s, dp, rows + row, (float)c.s.scale * LOG2_E);
        tile_add<T, D>(dq, s, sk);
    }
    cp_async_wait<0>();
    tile_store_rows<T, D>(dq, static_cast<T *>(c.dq) + token * c.s.ldq + head, c.s.ldq, row,
                          q1 - q0, c.more, (float)c.s.scale);
}

template <class T, int D> struct grad_key {
    enum {
        WARPS = D <= 64 ? 4 : 8,
        MT = D <= 64 ? 2 : 1,
        THREADS = WARPS * 32,
        KEYS = WARPS * MT * 16,
        QUERIES = D <= 64 ? 32 : 64,
        LD = D + TILE_PAD,
        STAGE = 2 * QUERIES * LD, /* queries, dout */
        BYTES = (2 * KEYS * LD + 2 * STAGE) * (int)sizeof(T)
    };
    static_assert(THREADS == 4 * QUERIES, "each thread brings one field of a query");
};

/* What a tile's columns, its queries, need: four rows of bits, [4][QUERIES]. */
enum grad_field { LSE, DELTA, FIRST, END, FIELDS };

static __device__ __forceinline__ uint32_t column_get(const struct attention_call &c, int b, int h,
                                                      int query, int field)
{
    const int64_t stat = ((int64_t)h * c.s.B + b) * c.s.Tq + query;
    if (query >= c.s.Tq) { /* sees nothing */
        return field == LSE ? __float_as_uint(INFINITY) : field == FIRST ? (uint32_t)INT32_MAX : 0;
    }
    const struct span seen = attention_keys(c, b, query, query + 1);
    return field == LSE     ? __float_as_uint(grad_lse(c, stat, seen))
           : field == DELTA ? __float_as_uint(c.delta[stat])
           : field == FIRST ? (uint32_t)seen.first
                            : (uint32_t)seen.end;
}

/* s becomes the weights p and dp becomes p * (dp - delta) */
template <int MT, int N>
static __device__ __forceinline__ void columns_grad(float (&s)[MT][N][4], float (&dp)[MT][N][4],
                                                    const uint32_t *columns, float scale)
{
#pragma unroll
    for (int j = 0; j < N * 2; j++) {
        const int column = j / 2 * 8 + ((int)threadIdx.x & 3) * 2 + j % 2;
        const float lse = __uint_as_float(columns[LSE * N * 8 + column]),
                    delta = __uint_as_float(columns[DELTA * N * 8 + column]);
#pragma unroll
        for (int n = 0; n < MT * 2; n++) {
            float &x = s[n / 2][j / 2][n % 2 * 2 + j % 2], &y = dp[n / 2][j / 2][n % 2 * 2 + j % 2];
            x = exp2f(x * scale - lse);
            y = x * (y - delta);
        }
    }
}

/* Scores of keys that a query does not see become -inf; key: the warp's first. */
template <int MT, int N>
static __device__ __forceinline__ void columns_mask(float (&s)[MT][N][4], const uint32_t *columns,
                                                    int key)
{
    key += ((int)threadIdx.x & 31) / 4;
#pragma unroll
    for (int j = 0; j < N * 2; j++) {
        const int column = j / 2 * 8 + ((int)threadIdx.x & 3) * 2 + j % 2;
        const int first = (int)columns[FIRST * N * 8 + column],
                  end = (int)columns[END * N * 8 + column];
#pragma unroll
        for (int n = 0; n < MT * 2; n++) {
            if (key + n * 8 < first || key + n * 8 >= end) {
                s[n / 2][j / 2][n % 2 * 2 + j % 2] = -INFINITY;
            }
        }
    }
}

/* What a block seldom needs, kept in shared memory: registers are scarce. */
struct grad_block {
    struct span seen; /* the queries that see its keys           */
    int head_end;     /* of its group                            */
    int key, keys;    /* first, number                           */
    int64_t token;    /* of the first key                        */
    int64_t column;   /* of its head in k, v, dk, dv             */
};

template <int KEYS>
static __device__ struct grad_block grad_block_get(const struct attention_call &c, int K)
{
    const int b = (int)blockIdx.z, g = (int)blockIdx.y, key = (int)blockIdx.x * KEYS,
              keys = min(KEYS, c.s.Tk - key);
    return { attention_queries(c, b, key, key + keys),
             (g + 1) * (c.s.H / c.s.G),
             key,
             keys,
             (int64_t)b * c.s.Tk + key,
             (int64_t)g * K };
}

template <class T, int D>
static __device__ __forceinline__ void grad_key_load(T *stage, const struct attention_call &c,
                                                     int b, int h, int query)
{
    typedef struct grad_key<T, D> F;
    const int64_t token = (int64_t)b * c.s.Tq + query, head = (int64_t)h * D;
    tile_load<T, D, F::QUERIES, F::THREADS>(stage, c.q, c.s.ldq, token, head, c.s.Tq - query);
    tile_load<T, D, F::QUERIES, F::THREADS>(stage + F::QUERIES * F::LD, c.dout, c.s.ldo, token,
                                            head, c.s.Tq - query);
}

template <class T, int D>
static __global__ void __launch_bounds__(grad_key<T, D>::THREADS)
    attention_grad_key_kernel(struct attention_call c)
{
    typedef struct grad_key<T, D> F;
    const int b = (int)blockIdx.z, tid = (int)threadIdx.x, row = tid / 32 * F::MT * 16;
    SHARED_ARRAY(uint32_t, columns, 2 * F::THREADS);
    SHARED_ARRAY(struct grad_block, block, 1);
    DYN_SHARED(T, shared);
    T *sk = shared, *sv = sk + F::KEYS * F::LD, *stage = sv + F::KEYS * F::LD;
    const struct grad_block begin = grad_block_get<F::KEYS>(c, D);
    int h = (int)blockIdx.y * (c.s.H / c.s.G), query = begin.seen.first, turn = 0;
    float dk[F::MT][D / 8][4], dv[F::MT][D / 8][4];

    if (tid == 0) {
        block[0] = begin;
    }
    grad_load<T, D, F>(sk, c, begin.token, begin.column, begin.keys);
    if (query < begin.seen.end) {
        grad_key_load<T, D>(stage, c, b, h, query);
        columns[tid] = column_get(c, b, h, query + tid % F::QUERIES, tid / F::QUERIES);
    }
    cp_async_commit();
    tile_clear(dk);
    tile_clear(dv);
    for (int more = query < begin.seen.end; more;) {
        float s[F::MT][F::QUERIES / 8][4], dp[F::MT][F::QUERIES / 8][4];
        const T *sq = stage + turn * F::STAGE, *sdout = sq + F::QUERIES * F::LD;
        const uint32_t *now = columns + turn * F::THREADS;
        cp_async_wait<0>();
        __syncthreads(); /* this stage is here, the other one has been used */
        turn ^= 1;
        query += F::QUERIES;
        if (query >= block[0].seen.end) {
            query = block[0].seen.first;
            h++;
        }
        more = h < block[0].head_end;
        const uint32_t next =
            more ? column_get(c, b, h, query + tid % F::QUERIES, tid / F::QUERIES) : 0;
        if (more) {
            grad_key_load<T, D>(stage + turn * F::STAGE, c, b, h, query);
        }
        cp_async_commit();
        tile_scores<T, D>(s, sk + row * F::LD, sq);
        if ((int)now[FIRST * F::QUERIES + F::QUERIES - 1] > block[0].key ||
            (int)now[END * F::QUERIES] < block[0].key + F::KEYS) {
            columns_mask(s, now, block[0].key + row);
        }
        tile_scores<T, D>(dp, sv + row * F::LD, sdout);
        columns_grad(s, dp, now, (float)c.s.scale * LOG2_E);
        columns[turn * F::THREADS + tid] = next;
        tile_add<T, D>(dv, s, sdout);
        tile_add<T, D>(dk, dp, sq);
    }
    cp_async_wait<0>();
    __syncthreads(); /* block is here, also if there was no query */
    const struct grad_block end = block[0];
    const int64_t at = end.token * c.s.ldkv + end.column;
    tile_store_rows<T, D>(dk, static_cast<T *>(c.dk) + at, c.s.ldkv, row, end.keys, c.more,
                          (float)c.s.scale);
    tile_store_rows<T, D>(dv, static_cast<T *>(c.dv) + at, c.s.ldkv, row, end.keys, c.more, 1);
}

template <class T, int D> static void queue_grad(struct queue *q, const struct attention_call *c)
{
    typedef struct grad_query<T, D> Q;
    typedef struct grad_key<T, D> KV;
    attention_launch(q, c, attention_grad_key_kernel<T, D>, c->s.Tk, KV::KEYS, c->s.G, KV::THREADS,
                     KV::BYTES, "attention_grad of keys");
    attention_launch(q, c, attention_grad_query_kernel<T, D>, c->s.Tq, Q::QUERIES, c->s.H,
                     Q::THREADS, Q::BYTES, "attention_grad of queries");
}

void attention_grad_tiled(struct queue *q, const struct attention_call *c, enum dtype t)
{
    if (t == BF16) {
        c->s.K == 64 ? queue_grad<bf16, 64>(q, c) : queue_grad<bf16, 128>(q, c);
    } else {
        c->s.K == 64 ? queue_grad<f16, 64>(q, c) : queue_grad<f16, 128>(q, c);
    }
}
