/* The compute seam: one slot per operation. Operations are queued and return nothing; what the host
 * needs is fetched once per step with `download`. Row-major; symbols: doc/shapes.md; T: token rows
 * of the call; ld*: elements between rows. An operand carries its type: F32, F64, BF16 or F16 for
 * activations and weights of one call alike. In float64 runs everything is F64; with BF16 and F16
 * statistics (rstd, lse, delta), RoPE's table, logits, gradients of weights, masters and moments
 * are F32 (linear: y may be F32 then). Operands do not overlap unless a slot says "in place".
 * Weight gradients accumulate (+=), rows in an order that depends only on shapes and the number of
 * threads. Sums of statistics are at least F32; `reference` makes every F32 sum in double. */
#ifndef COMPUTE_OPS_H
#define COMPUTE_OPS_H
#include "compute/lanes.h"
#include "compute/operand.h"

struct ops {
    const char *name;            /* "reference", "cpu", "cuda" */
    const struct memory *memory; /* where its operands live; NULL: the process's own memory */
    /* Of backends with devices, else NULL. pinned: host memory. probe: one is there; E_RESOURCE */
    const struct memory *pinned;
    const struct lanes *lanes; /* copies between the two, beside computing */
    enum status (*probe)(int local_rank, struct err *e);
    void (*device)(struct queue *q, struct ops_device *d);
    /* At set-up, before attention_scratch is asked. E_INPUT: the word; E_RESOURCE */
    enum status (*attention_choose)(struct queue *q, struct attention_choice *c,
                                    const struct attention_shape *s, enum dtype t, struct err *e);
    /* ---- queue and memory ---- */
    /* local_rank: which of its node's ranks; a GPU backend takes device local_rank % devices */
    enum status (*queue_create)(struct queue **q, int threads, int local_rank, struct err *e);
    void (*queue_free)(struct queue *q);
    void (*sync)(struct queue *q); /* host waits for all queued work */
    /* upload: src may be reused after return; download: dst is valid after sync */
    void (*upload)(struct queue *q, dptr dst, const void *src, size_t bytes);
    void (*download)(struct queue *q, void *dst, dptr src, size_t bytes);
    void (*copy)(struct queue *q, dptr dst, dptr src, size_t bytes);
    void (*zero)(struct queue *q, dptr dst, size_t bytes);
    void (*convert)(struct queue *q, struct operand dst, struct operand src, int64_t n);
    /* y = a + b; y may be a or b */
    void (*add)(struct queue *q, struct operand y, struct operand a, struct operand b, int64_t n);

    /* ---- products; W [N, K] as stored, Hugging Face's [out, in] ---- */
    /* y[T,N] = x[T,K] W^T  (+ y if add) */
    void (*linear)(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                   struct operand w, int64_t T, int64_t N, int64_t K, int add);
    /* dx[T,K] = dy[T,N] W  (+ dx if add) */
    void (*linear_grad_input)(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                              int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K,
                              int add);
    /* dw[N,K] += dy^T x */
    void (*linear_grad_weight)(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                               struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K);
    /* y += b, in place; db += column sums of dy */
    void (*bias)(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
                 int64_t N);
    void (*bias_grad)(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                      int64_t N);

    /* ---- embedding, vocabulary-parallel: this rank holds rows first .. first+rows-1 ---- */
    /* x[T,D] = w[id-first] or 0 when the id is not here */
    void (*embed)(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
                  int64_t rows, int64_t T, int64_t D);
    /* dw[id-first] += dx[t], t ascending per row, no atomics */
    void (*embed_grad)(struct queue *q, struct operand dw, struct operand dx, dptr ids,
                       int64_t first, int64_t rows, int64_t T, int64_t D);
    /* n elements of row t of src -> row at[t] of dst; at int32 [T], no two alike; -1: nowhere */
    void (*put_rows)(struct queue *q, struct operand dst, int64_t ldd, struct operand src,
                     int64_t lds, dptr at, int64_t T, int64_t n);
    /* ---- RMSNorm (Zhang & Sennrich 2019) over `heads` runs of K elements per row ----
     * y = x * rstd * w, rstd = 1/sqrt(mean(x^2) + eps). Block norms: heads 1, K = D. q/k norm:
     * heads of K inside a row of stride ld. rstd [T, heads], F32 (F64 if x is). If r is given
     * (heads 1): x_out = x + r first (x_out may be x or r), then that is normed; else y may be x */
    void (*rmsnorm)(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                    struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                    struct operand w, int64_t T, int heads, int64_t K, double eps);
    /* dx = (res +) rstd * (w dy - xhat mean(w dy xhat)), xhat = x rstd; dx may be dy or res; res
     * (row stride lddx) may be NONE */
    void (*rmsnorm_grad_input)(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                               struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                               struct operand rstd, struct operand w, int64_t T, int heads,
                               int64_t K);
    /* dw[K] += sum over rows and heads of dy * x * rstd */
    void (*rmsnorm_grad_weight)(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                                struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                                int heads, int64_t K);
    /* ---- RoPE (Su et al. 2021), halves (i, i + K/2), in place on the first `heads` of a row ----
     * table [positions, K]: K/2 cosines, then K/2 sines, F32 (F64 if x is). sign +1: rotate, -1:
     * the inverse (gradient). position int32 [T] */
    void (*rope)(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
                 int64_t T, int heads, int64_t K, int sign);

    /* ---- attention: query i sees key j of its sequence: qstart[i] <= kplace[j] <= qplace[i] ----
     * o [B Tq, ldo], lse [H, B Tq] (natural log of the sum of exp(scores), F32 or F64). A query
     * that sees no key: o = 0, lse = -inf. merge: o and lse hold a partial result over other keys,
     * already normalised; combine with it. scratch: attention_scratch bytes */
    void (*attention)(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                      struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                      const struct attention_shape *s, int merge, dptr scratch);
    /* delta [H, B Tq] = sum over K of o * do, in lse's type */
    void (*attention_delta)(struct queue *q, struct operand delta, struct operand o,
                            struct operand dout, const struct attention_shape *s);
    /* dq, dk, dv (strides as q, k, v) = gradient through these keys, or += if add */
    void (*attention_grad)(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                           struct operand dout, struct operand qq, struct operand k,
                           struct operand v, struct operand lse, struct operand delta, dptr qplace,
                           dptr qstart, dptr kplace, const struct attention_shape *s, int add,
                           dptr scratch);
    size_t (*attention_scratch)(const struct attention_shape *s, enum dtype t, int threads);

    /* ---- SwiGLU (Shazeer 2020): gu [T, 2F] = gate | up; h [T, F] = silu(gate) * up ---- */
    void (*swiglu)(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F);
    /* dgu may be gu */
    void (*swiglu_grad)(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                        int64_t T, int64_t F);

    /* ---- vocabulary-parallel cross-entropy ----
     * logits [T, rows] of vocabulary rows first .. first+rows-1; only the first `real` of them
     * exist (the rest is padding and is never looked at). labels int32 [T], -1: not counted */
    /* stats [T, 3] = max, sum exp(logit - max), the label's logit (0 when it is not here);
     * real = 0: -inf, 0, 0 */
    void (*softmax_stats)(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                          int64_t T, int64_t rows, int64_t first, int64_t real);
    /* all [parts][T][3], combined in part order: lse [T]; loss (F64 scalar) += sum over counted
     * rows of lse - label's logit, t ascending; token_loss [T] (may be NONE): each, or 0 */
    void (*softmax_loss)(struct queue *q, dptr loss, struct operand lse, struct operand token_loss,
                         struct operand all, int parts, dptr labels, int64_t T);
    /* dlogits [T, rows] = (exp(logit - lse) - [label]) * scale, in the type of activations; may be
     * logits when that has this type; 0 in padding and uncounted rows */
    void (*softmax_grad)(struct queue *q, struct operand dlogits, struct operand logits,
                         struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                         int64_t first, int64_t real);

    /* ---- optimiser: flat runs; masters, moments and gradients of one type ----
     * sums[i] (F64) = sum of squares, in double, of run i: n[i] elements at at[i] of g; at and n
     * int64 [runs], operands like the rest */
    void (*square_sums)(struct queue *q, dptr sums, struct operand g, dptr at, dptr n,
                        int64_t runs);
    /* AdamW (Loshchilov & Hutter 2019): g' = g * *clip (clip: F64 scalar on the device);
     * m = b1 m + (1-b1) g'; v = b2 v + (1-b2) g'^2;
     * w = w (1 - lr decay) - lr (m/c1) / (sqrt(v/c2) + eps); copy (may be NONE) = w in its type */
    void (*adamw)(struct queue *q, struct operand w, struct operand m, struct operand v,
                  struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
                  int64_t n);
    /* *clip = (max_norm > 0 ? min(1, max_norm / (*norm + 1e-6)) : 1) * unscale; norm (of the true
     * gradient), clip F64 scalars; unscale: 1 / loss scale */
    void (*clip_factor)(struct queue *q, dptr clip, dptr norm, double max_norm, double unscale);

    /* FLOP/s of this rank's threads, measured for about `seconds`; of a device: nominal, dense */
    double (*measure_peak)(struct queue *q, enum dtype t, double seconds);
};

extern const struct ops ops_cuda; /* cuda/, in builds with CUDA. Complete; no float64 */
#endif
