/* What the attention kernels share: one call as they read it, who sees whom, element types.
 * o [B Tq, ldo], lse and delta [H, B Tq] as in ops.h. Places are consecutive within a sequence and
 * document starts ascend with them, so a run of queries sees one run of keys and the reverse. */
#ifndef CUDA_ATTENTION_H
#define CUDA_ATTENTION_H
#include "cuda/element.h"

struct attention_call {
    struct attention_shape s;
    const void *q, *k, *v, *dout;
    void *o, *dq, *dk, *dv;
    float *lse;
    const float *delta;
    const int32_t *qplace, *qstart, *kplace;
    int more; /* forward: merge with what o and lse hold; backward: add to the gradients */
};

/* Each queues the whole operation. tiled: tensor cores, K = 64 or 128, BF16 or F16, rows of 16-byte
 * pieces. plain: any even K <= 256, any of the three types, any alignment. */
void attention_forward_tiled(struct queue *q, const struct attention_call *c, enum dtype t) LOCAL;
void attention_forward_plain(struct queue *q, const struct attention_call *c, enum dtype t) LOCAL;
void attention_grad_tiled(struct queue *q, const struct attention_call *c, enum dtype t) LOCAL;
void attention_grad_plain(struct queue *q, const struct attention_call *c, enum dtype t) LOCAL;

struct span {
    int first, end; /* indices in one sequence of the call; nothing where end <= first */
};

/* The keys that some query of first .. end-1 of sequence b sees; end > first. */
static inline __device__ struct span attention_keys(const struct attention_call &c, int b,
                                                    int first, int end)
{
    const int64_t queries = (int64_t)b * c.s.Tq;
    const int place = c.kplace[(int64_t)b * c.s.Tk];
    return { max(c.qstart[queries + first] - place, 0),
             min(c.qplace[queries + end - 1] - place + 1, c.s.Tk) };
}

/* The keys that all of them see. */
static inline __device__ struct span attention_common_keys(const struct attention_call &c, int b,
                                                           int first, int end)
{
    const int64_t queries = (int64_t)b * c.s.Tq;
    const int place = c.kplace[(int64_t)b * c.s.Tk];
    return { max(c.qstart[queries + end - 1] - place, 0),
             min(c.qplace[queries + first] - place + 1, c.s.Tk) };
}

/* The queries that see some key of first .. end-1 of sequence b. */
static inline __device__ struct span attention_queries(const struct attention_call &c, int b,
                                                       int first, int end)
{
    const int64_t queries = (int64_t)b * c.s.Tq, keys = (int64_t)b * c.s.Tk;
    const int last_place = c.kplace[keys + end - 1];
    int low = max(c.kplace[keys + first] - c.qplace[queries], 0), high = c.s.Tq;
    const int begin = low;
    while (low < high) { /* the first query whose document starts after these keys */
        const int middle = low + (high - low) / 2;
        if (c.qstart[queries + middle] > last_place) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return { begin, low };
}

/* log(exp(a) + exp(b)), not both -inf */
static inline __device__ float attention_log_sum(float a, float b)
{
    const float top = a > b ? a : b, low = a > b ? b : a;
    return top + log1pf(expf(low - top));
}

/* What a finished row of the forward pass writes: keep * o + take * (the unnormalised row). */
struct attention_mix {
    float keep, take, lse;
};

/* top: largest score, times the scale; sum: of exp(score - top); sees: whether any key is seen.
 * Scores that are all -inf leave no sum, and NaN as the result. before: the partial lse, if more.
 */
static inline __device__ struct attention_mix attention_finish(float top, float sum, bool sees,
                                                               int more, float before)
{
    const float inverse = sum > 0 ? 1 / sum : sees ? NAN : 0.0f;
    const float lse = sees ? top + logf(sum > 0 ? sum : NAN) : -INFINITY;
    if (!more) {
        return { 0, inverse, lse };
    }
    if (!sees) {
        return { 1, 0, before };
    }
    const float both = attention_log_sum(before, lse);
    return { expf(before - both), inverse * expf(lse - both), both };
}

static inline __device__ float attention_float(float x)
{
    return x;
}
static inline __device__ float attention_float(bf16 x)
{
    return __bfloat162float(x);
}
static inline __device__ float attention_float(f16 x)
{
    return __half2float(x);
}
static inline __device__ void attention_put(float *p, float x)
{
    *p = x;
}
static inline __device__ void attention_put(bf16 *p, float x)
{
    *p = __float2bfloat16(x);
}
static inline __device__ void attention_put(f16 *p, float x)
{
    *p = __float2half(x);
}

/* A block of `threads` for each run of `block` rows of a sequence, and for each head. */
static inline void attention_launch(struct queue *q, const struct attention_call *c,
                                    void (*kernel)(struct attention_call), int rows, int block,
                                    int heads, int threads, int bytes, const char *what)
{
    const dim3 grid((unsigned)ceil_div(rows, block), (unsigned)heads, (unsigned)c->s.B);
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               what);
    LAUNCH(kernel, grid, dim3((unsigned)threads), (size_t)bytes, q->stream, *c);
    cuda_check(cudaGetLastError(), what);
}
#endif
