/* Attention for every head size and type, in fp32: blocks of 64 rows (queries, or keys for dk and
 * dv) against 32 columns at a time, everything else in turn through shared memory. Thread (y, x) of
 * 16 x 16 owns rows 4 y + i and columns or head elements x + 16 j. */
#include "cuda/attention.h"

enum { THREADS = 256, ROWS = 64, COLUMNS = 32, CHUNK = 32, LD = CHUNK + 1, PART = 16 };

struct plain_memory { /* shared */
    float *rows;      /* [ROWS, LD]: a chunk of the left operand's head elements */
    float *columns;   /* [COLUMNS, LD]: of the right one's                       */
    float *weights;   /* [ROWS, LD]: of every row for every column               */
    float *part;      /* [PART, WIDE]: whole heads of some columns               */
};

static __device__ __forceinline__ int plain_row()
{
    return (int)threadIdx.x / 16 * 4;
}
static __device__ __forceinline__ int plain_column()
{
    return (int)threadIdx.x % 16;
}

/* to [height, LD] = elements k0 .. k0+CHUNK-1 of `rows` rows, zeros elsewhere */
template <class T>
static __device__ void chunk_load(float *to, int height, const T *from, int64_t ld, int rows,
                                  int k0, int K)
{
    for (int i = (int)threadIdx.x; i < height * CHUNK; i += THREADS) {
        const int row = i / CHUNK, at = i % CHUNK;
        to[row * LD + at] =
            row < rows && k0 + at < K ? attention_float(from[row * ld + k0 + at]) : 0;
    }
}

/* s = a [rows, K] b [columns, K]^T; a chunk's products are summed before they join the rest */
template <class T>
static __device__ void plain_scores(float (&s)[4][2], const struct plain_memory &m, const T *a,
                                    int64_t lda, int rows, const T *b, int64_t ldb, int columns,
                                    int K)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        s[i / 2][i % 2] = 0;
    }
    for (int k0 = 0; k0 < K; k0 += CHUNK) {
        float sum[4][2] = {};
        __syncthreads();
        chunk_load(m.rows, ROWS, a, lda, rows, k0, K);
        chunk_load(m.columns, COLUMNS, b, ldb, columns, k0, K);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < CHUNK; k++) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                sum[i / 2][i % 2] += m.rows[(plain_row() + i / 2) * LD + k] *
                                     m.columns[(plain_column() + i % 2 * 16) * LD + k];
            }
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            s[i / 2][i % 2] += sum[i / 2][i % 2];
        }
    }
}

/* sum += w b, w [ROWS, COLUMNS], b [columns, K] */
template <class T, int WIDE>
static __device__ void plain_add(float (&sum)[4][WIDE / 16], const struct plain_memory &m,
                                 const float (&w)[4][2], const T *b, int64_t ldb, int columns,
                                 int K)
{
    __syncthreads(); /* the last weights have been used */
#pragma unroll
    for (int i = 0; i < 8; i++) {
        m.weights[(plain_row() + i / 2) * LD + plain_column() + i % 2 * 16] = w[i / 2][i % 2];
    }
    for (int c = 0; c < COLUMNS; c += PART) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < PART * WIDE; i += THREADS) {
            const int row = c + i / WIDE, at = i % WIDE;
            m.part[i] = row < columns && at < K ? attention_float(b[row * ldb + at]) : 0;
        }
        __syncthreads();
#pragma unroll 4
        for (int n = 0; n < PART; n++) {
            const float *weight = m.weights + plain_row() * LD + c + n,
                        *element = m.part + n * WIDE + plain_column();
#pragma unroll
            for (int j = 0; j < WIDE / 16; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    sum[i][j] += weight[i * LD] * element[16 * j];
                }
            }
        }
    }
}

template <int N> static __device__ __forceinline__ void plain_clear(float (&x)[4][N])
{
#pragma unroll
    for (int i = 0; i < 4 * N; i++) {
        x[i / N][i % N] = 0;
    }
}

/* row [K] = take * x (+ keep * row, if more), by the 16 threads of a row */
template <class T, int N>
static __device__ void plain_store(T *row, const float (&x)[N], int K, int more, float keep,
                                   float take)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int at = plain_column() + 16 * j;
        if (at < K) {
            const float old = more ? keep * attention_float(row[at]) : 0;
            attention_put(row + at, old + take * x[j]);
        }
    }
}

/* The memory of a block. */
#define PLAIN_MEMORY(m, WIDE)                      \
    SHARED_ARRAY(float, m##_rows, ROWS *LD);       \
    SHARED_ARRAY(float, m##_columns, COLUMNS *LD); \
    SHARED_ARRAY(float, m##_weights, ROWS *LD);    \
    SHARED_ARRAY(float, m##_part, PART *WIDE);     \
    const struct plain_memory m = { m##_rows, m##_columns, m##_weights, m##_part }

struct plain_softmax { /* of a thread's rows */
    float top[4], sum[4];
    struct span seen[4];
};

/* s becomes exp(s - top); what is summed so far is to be multiplied by shrink. key: the first
 * column's; a row's 16 threads agree. */
static __device__ void plain_weigh(float (&s)[4][2], struct plain_softmax &r, float (&shrink)[4],
                                   float scale, int key)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float top = r.top[i], sum = 0;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int at = key + plain_column() + 16 * j;
            s[i][j] = at >= r.seen[i].first && at < r.seen[i].end ? scale * s[i][j] : -INFINITY;
            top = fmaxf(top, s[i][j]);
        }
#pragma unroll
        for (int n = 8; n > 0; n /= 2) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, n));
        }
        const float base = top == -INFINITY ? 0 : top;
        shrink[i] = expf(r.top[i] - base);
        r.top[i] = top;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            s[i][j] = expf(s[i][j] - base);
            sum += s[i][j];
        }
#pragma unroll
        for (int n = 8; n > 0; n /= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, n);
        }
        r.sum[i] = r.sum[i] * shrink[i] + sum;
    }
}

template <class T, int WIDE>
static __global__ void __launch_bounds__(THREADS, 1) plain_forward_kernel(struct attention_call c)
{
    const int b = (int)blockIdx.z, h = (int)blockIdx.y, K = c.s.K,
              q0 = (int)(gridDim.x - 1 - blockIdx.x) * ROWS, q1 = min(q0 + ROWS, c.s.Tq);
    const int64_t token = (int64_t)b * c.s.Tq + q0, keys = (int64_t)b * c.s.Tk;
    const int64_t head = (int64_t)(h / (c.s.H / c.s.G)) * K;
    const T *q = static_cast<const T *>(c.q) + token * c.s.ldq + (int64_t)h * K,
            *k = static_cast<const T *>(c.k) + keys * c.s.ldkv + head,
            *v = static_cast<const T *>(c.v) + keys * c.s.ldkv + head;
    float *lse = c.lse + (int64_t)h * c.s.B * c.s.Tq + token;
    PLAIN_MEMORY(m, WIDE);
    struct plain_softmax r;
    float sum[4][WIDE / 16], s[4][2], shrink[4], before[4];
    plain_clear(sum);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = min(plain_row() + i, q1 - q0 - 1);
        r.top[i] = -INFINITY;
        r.sum[i] = 0;
        r.seen[i] = attention_keys(c, b, q0 + row, q0 + row + 1);
        before[i] = c.more ? lse[row] : 0;
    }
    const struct span seen = attention_keys(c, b, q0, q1);
    for (int key = seen.first; key < seen.end; key += COLUMNS) {
        const int columns = min(COLUMNS, c.s.Tk - key);
        plain_scores(s, m, q, c.s.ldq, q1 - q0, k + key * c.s.ldkv, c.s.ldkv, columns, K);
        plain_weigh(s, r, shrink, (float)c.s.scale, key);
#pragma unroll
        for (int i = 0; i < WIDE / 4; i++) {
            sum[i % 4][i / 4] *= shrink[i % 4];
        }
        plain_add<T, WIDE>(sum, m, s, v + key * c.s.ldkv, c.s.ldkv, columns, K);
    }
    __syncthreads(); /* the partial lse has been read */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = plain_row() + i;
        const bool sees = r.seen[i].first < r.seen[i].end;
        if (row < q1 - q0 && (sees || !c.more)) {
            const struct attention_mix mix =
                attention_finish(r.top[i], r.sum[i], sees, c.more, before[i]);
            plain_store(static_cast<T *>(c.o) + (token + row) * c.s.ldo + (int64_t)h * K, sum[i], K,
                        c.more, mix.keep, mix.take);
            if (plain_column() == 0) {
                lse[row] = mix.lse;
            }
        }
    }
}

template <class T, int WIDE>
static __global__ void __launch_bounds__(THREADS, 1)
    plain_grad_query_kernel(struct attention_call c)
{
    const int b = (int)blockIdx.z, h = (int)blockIdx.y, K = c.s.K,
              q0 = (int)(gridDim.x - 1 - blockIdx.x) * ROWS, q1 = min(q0 + ROWS, c.s.Tq);
    const int64_t token = (int64_t)b * c.s.Tq + q0, keys = (int64_t)b * c.s.Tk;
    const int64_t head = (int64_t)(h / (c.s.H / c.s.G)) * K;
    const int64_t at = token * c.s.ldq + (int64_t)h * K, stat = (int64_t)h * c.s.B * c.s.Tq + token;
    const T *q = static_cast<const T *>(c.q) + at,
            *dout = static_cast<const T *>(c.dout) + token * c.s.ldo + (int64_t)h * K,
            *k = static_cast<const T *>(c.k) + keys * c.s.ldkv + head,
            *v = static_cast<const T *>(c.v) + keys * c.s.ldkv + head;
    PLAIN_MEMORY(m, WIDE);
    struct span row_seen[4];
    float sum[4][WIDE / 16], s[4][2], dp[4][2], lse[4], delta[4];
    plain_clear(sum);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int row = min(plain_row() + i, q1 - q0 - 1);
        row_seen[i] = attention_keys(c, b, q0 + row, q0 + row + 1);
        lse[i] = c.lse[stat + row];
        delta[i] = c.delta[stat + row];
    }
    const struct span seen = attention_keys(c, b, q0, q1);
    for (int key = seen.first; key < seen.end; key += COLUMNS) {
        const int columns = min(COLUMNS, c.s.Tk - key);
        const int64_t from = key * c.s.ldkv;
        plain_scores(s, m, q, c.s.ldq, q1 - q0, k + from, c.s.ldkv, columns, K);
        plain_scores(dp, m, dout, c.s.ldo, q1 - q0, v + from, c.s.ldkv, columns, K);
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const int i = n / 2, column = key + plain_column() + n % 2 * 16;
            const bool is_seen = column >= row_seen[i].first && column < row_seen[i].end;
            const float p = expf((float)c.s.scale * s[i][n % 2] - lse[i]);
            s[i][n % 2] = is_seen ? p * (dp[i][n % 2] - delta[i]) : 0;
        }
        plain_add<T, WIDE>(sum, m, s, k + from, c.s.ldkv, columns, K);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (plain_row() + i < q1 - q0) {
            plain_store(static_cast<T *>(c.dq) + at + (plain_row() + i) * c.s.ldq, sum[i], K,
                        c.more, 1, (float)c.s.scale);
        }
    }
}

/* p and the gradient of the scaled score, from the scores s and dp of 64 keys and the queries from
 * `query` on; `stat`: where the sequence's lse and delta begin. */
static __device__ void plain_pair_grad(float (&s)[4][2], float (&dp)[4][2],
                                       const struct attention_call &c, int b, int64_t stat, int key,
                                       int query)
{
    const int64_t queries = (int64_t)b * c.s.Tq;
#pragma unroll
    for (int n = 0; n < 8; n++) {
        const int i = n / 2, at = query + plain_column() + n % 2 * 16;
        float p = 0, ds = 0;
        if (at < c.s.Tq && key + plain_row() + i < c.s.Tk) {
            const int place = c.kplace[(int64_t)b * c.s.Tk + key + plain_row() + i];
            if (place <= c.qplace[queries + at] && place >= c.qstart[queries + at]) {
                p = expf((float)c.s.scale * s[i][n % 2] - c.lse[stat + at]);
                ds = p * (dp[i][n % 2] - c.delta[stat + at]);
            }
        }
        s[i][n % 2] = p;
        dp[i][n % 2] = ds;
    }
}

template <class T, int WIDE>
static __global__ void __launch_bounds__(THREADS, 1) plain_grad_key_kernel(struct attention_call c)
{
    const int b = (int)blockIdx.z, g = (int)blockIdx.y, K = c.s.K, k0 = (int)blockIdx.x * ROWS,
              k1 = min(k0 + ROWS, c.s.Tk), heads = c.s.H / c.s.G;
    const int64_t at = ((int64_t)b * c.s.Tk + k0) * c.s.ldkv + (int64_t)g * K;
    const T *k = static_cast<const T *>(c.k) + at, *v = static_cast<const T *>(c.v) + at;
    PLAIN_MEMORY(m, WIDE);
    float sum_k[4][WIDE / 16], sum_v[4][WIDE / 16], p[4][2], ds[4][2];
    plain_clear(sum_k);
    plain_clear(sum_v);
    const struct span seen = attention_queries(c, b, k0, k1);
    for (int h = g * heads; h < (g + 1) * heads; h++) {
        for (int query = seen.first; query < seen.end; query += COLUMNS) {
            const int64_t token = (int64_t)b * c.s.Tq + query;
            const T *q = static_cast<const T *>(c.q) + token * c.s.ldq + (int64_t)h * K,
                    *dout = static_cast<const T *>(c.dout) + token * c.s.ldo + (int64_t)h * K;
            const int columns = min(COLUMNS, c.s.Tq - query);
            plain_scores(p, m, k, c.s.ldkv, k1 - k0, q, c.s.ldq, columns, K);
            plain_scores(ds, m, v, c.s.ldkv, k1 - k0, dout, c.s.ldo, columns, K);
            plain_pair_grad(p, ds, c, b, ((int64_t)h * c.s.B + b) * c.s.Tq, k0, query);
            plain_add<T, WIDE>(sum_v, m, p, dout, c.s.ldo, columns, K);
            plain_add<T, WIDE>(sum_k, m, ds, q, c.s.ldq, columns, K);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t row = at + (plain_row() + i) * c.s.ldkv;
        if (plain_row() + i < k1 - k0) {
            plain_store(static_cast<T *>(c.dk) + row, sum_k[i], K, c.more, 1, (float)c.s.scale);
            plain_store(static_cast<T *>(c.dv) + row, sum_v[i], K, c.more, 1, 1);
        }
    }
}

/* The kernel for heads of up to 64, 128, 256. */
#define BY_WIDTH(kernel, T, K) \
    ((K) <= 64 ? kernel<T, 64> : (K) <= 128 ? kernel<T, 128> : kernel<T, 256>)

template <class T> static void queue_forward(struct queue *q, const struct attention_call *c)
{
    attention_launch(q, c, BY_WIDTH(plain_forward_kernel, T, c->s.K), c->s.Tq, ROWS, c->s.H,
                     THREADS, 0, "attention");
}

template <class T> static void queue_grad(struct queue *q, const struct attention_call *c)
{
    attention_launch(q, c, BY_WIDTH(plain_grad_key_kernel, T, c->s.K), c->s.Tk, ROWS, c->s.G,
                     THREADS, 0, "attention_grad of keys");
    attention_launch(q, c, BY_WIDTH(plain_grad_query_kernel, T, c->s.K), c->s.Tq, ROWS, c->s.H,
                     THREADS, 0, "attention_grad of queries");
}

void attention_forward_plain(struct queue *q, const struct attention_call *c, enum dtype t)
{
    with_element(t, "attention", [&](auto e) { queue_forward<typename decltype(e)::type>(q, c); });
}

void attention_grad_plain(struct queue *q, const struct attention_call *c, enum dtype t)
{
    with_element(t, "attention_grad",
                 [&](auto e) { queue_grad<typename decltype(e)::type>(q, c); });
}
