/* The reference backend: every element is read as a double, computed in double, rounded once when
 * it is stored. */
#ifndef COMPUTE_REF_H
#define COMPUTE_REF_H
#include "compute/choose.h"
#include "compute/queue.h"

static inline double ref_get(struct operand o, int64_t i)
{
    switch (o.t) {
    case F32:
        return ((const float *)(const void *)o.p.p)[i];
    case F64:
        return ((const double *)(const void *)o.p.p)[i];
    case BF16:
        return dtype_bf16_to_f32(((const uint16_t *)(const void *)o.p.p)[i]);
    case F16:
        return dtype_f16_to_f32(((const uint16_t *)(const void *)o.p.p)[i]);
    default:
        die(E_BUG, "an operation got elements of type %s", dtype_name(o.t));
    }
}

static inline void ref_put(struct operand o, int64_t i, double x)
{
    switch (o.t) {
    case F32:
        ((float *)(void *)o.p.p)[i] = (float)x;
        break;
    case F64:
        ((double *)(void *)o.p.p)[i] = x;
        break;
    case BF16:
        ((uint16_t *)(void *)o.p.p)[i] = dtype_f64_to_bf16(x);
        break;
    case F16:
        ((uint16_t *)(void *)o.p.p)[i] = dtype_f64_to_f16(x);
        break;
    default:
        die(E_BUG, "an operation got elements of type %s", dtype_name(o.t));
    }
}

static inline const int32_t *ref_int32(dptr d)
{
    return (const int32_t *)(const void *)d.p;
}
static inline const int64_t *ref_int64(dptr d)
{
    return (const int64_t *)(const void *)d.p;
}
static inline double *ref_double(dptr d)
{
    return (double *)(void *)d.p;
}

/* Rows t of a loop go to threads in equal runs; no row depends on another. */
#define REF_ROWS \
    QUEUE_PRAGMA(omp parallel for num_threads(q->threads) schedule(static) if (q->threads > 1))

/* The slots of ops_ref, by file; contracts in ops.h. ref_products.c */
void ref_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                struct operand w, int64_t T, int64_t N, int64_t K, int add) LOCAL;
void ref_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                           int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K,
                           int add) LOCAL;
void ref_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                            struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K) LOCAL;
double ref_measure_peak(struct queue *q, enum dtype t, double seconds) LOCAL;

/* ref_rows.c */
void ref_add(struct queue *q, struct operand y, struct operand a, struct operand b,
             int64_t n) LOCAL;
void ref_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
              int64_t N) LOCAL;
void ref_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                   int64_t N) LOCAL;
void ref_put_rows(struct queue *q, struct operand dst, int64_t ldd, struct operand src, int64_t lds,
                  dptr at, int64_t T, int64_t n) LOCAL;
void ref_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
               int64_t rows, int64_t T, int64_t D) LOCAL;
void ref_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                    int64_t rows, int64_t T, int64_t D) LOCAL;
void ref_rope(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
              int64_t T, int heads, int64_t K, int sign) LOCAL;
void ref_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F) LOCAL;
void ref_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                     int64_t T, int64_t F) LOCAL;

/* ref_norm.c */
void ref_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                 struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                 struct operand w, int64_t T, int heads, int64_t K, double eps) LOCAL;
void ref_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                            struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                            struct operand rstd, struct operand w, int64_t T, int heads,
                            int64_t K) LOCAL;
void ref_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                             struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                             int heads, int64_t K) LOCAL;

/* ref_attention.c */
void ref_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                   struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                   const struct attention_shape *s, int merge, dptr scratch) LOCAL;
void ref_attention_delta(struct queue *q, struct operand delta, struct operand o,
                         struct operand dout, const struct attention_shape *s) LOCAL;
void ref_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                        struct operand dout, struct operand qq, struct operand k, struct operand v,
                        struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                        dptr kplace, const struct attention_shape *s, int add, dptr scratch) LOCAL;
size_t ref_attention_scratch(const struct attention_shape *s, enum dtype t, int threads) LOCAL;

/* ref_loss.c */
void ref_softmax_stats(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                       int64_t T, int64_t rows, int64_t first, int64_t real) LOCAL;
void ref_softmax_loss(struct queue *q, dptr loss, struct operand lse, struct operand token_loss,
                      struct operand all, int parts, dptr labels, int64_t T) LOCAL;
void ref_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                      struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                      int64_t first, int64_t real) LOCAL;
void ref_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n,
                     int64_t runs) LOCAL;
void ref_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
               struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
               int64_t n) LOCAL;
void ref_clip_factor(struct queue *q, dptr clip, dptr norm, double max_norm, double unscale) LOCAL;
#endif
