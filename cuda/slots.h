/* The slots of ops_cuda that our kernels implement; contracts in compute/ops.h. Types: activations
 * and weights F32, BF16 or F16; statistics, logits, gradients of weights, masters and moments F32.
 */
#ifndef CUDA_SLOTS_H
#define CUDA_SLOTS_H
#include "cuda/queue.h"
#ifdef __cplusplus
extern "C" {
#endif

/* rows.cu; convert: between any two of the three types */
void cuda_convert(struct queue *q, struct operand dst, struct operand src, int64_t n) LOCAL;
void cuda_add(struct queue *q, struct operand y, struct operand a, struct operand b,
              int64_t n) LOCAL;
void cuda_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
               int64_t N) LOCAL;
void cuda_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                    int64_t N) LOCAL;

/* embed.cu */
void cuda_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
                int64_t rows, int64_t T, int64_t D) LOCAL;
void cuda_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                     int64_t rows, int64_t T, int64_t D) LOCAL;

void cuda_put_rows(struct queue *q, struct operand dst, int64_t ldd, struct operand src,
                   int64_t lds, dptr at, int64_t T, int64_t n) LOCAL;

/* norm.cu */
void cuda_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                  struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                  struct operand w, int64_t T, int heads, int64_t K, double eps) LOCAL;
void cuda_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                             struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                             struct operand rstd, struct operand w, int64_t T, int heads,
                             int64_t K) LOCAL;
void cuda_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                              struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                              int heads, int64_t K) LOCAL;

/* rope.cu, swiglu.cu */
void cuda_rope(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
               int64_t T, int heads, int64_t K, int sign) LOCAL;
void cuda_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F) LOCAL;
void cuda_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                      int64_t T, int64_t F) LOCAL;

/* loss.cu */
void cuda_softmax_stats(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                        int64_t T, int64_t rows, int64_t first, int64_t real) LOCAL;
void cuda_softmax_loss(struct queue *q, dptr loss, struct operand lse, struct operand token_loss,
                       struct operand all, int parts, dptr labels, int64_t T) LOCAL;
void cuda_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                       struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                       int64_t first, int64_t real) LOCAL;

/* optim.cu */
void cuda_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n,
                      int64_t runs) LOCAL;
void cuda_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
                struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
                int64_t n) LOCAL;
void cuda_clip_factor(struct queue *q, dptr clip, dptr norm, double max_norm, double unscale) LOCAL;

/* attention.cu; delta and lse are F32. No scratch is needed */
void cuda_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                    struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                    const struct attention_shape *s, int merge, dptr scratch) LOCAL;
void cuda_attention_delta(struct queue *q, struct operand delta, struct operand o,
                          struct operand dout, const struct attention_shape *s) LOCAL;
void cuda_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                         struct operand dout, struct operand qq, struct operand k,
                         struct operand v, struct operand lse, struct operand delta, dptr qplace,
                         dptr qstart, dptr kplace, const struct attention_shape *s, int add,
                         dptr scratch) LOCAL;
size_t cuda_attention_scratch(const struct attention_shape *s, enum dtype t, int threads) LOCAL;

#ifdef __cplusplus
}
#endif
#endif
