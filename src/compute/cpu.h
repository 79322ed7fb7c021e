/* The fast CPU backend (F32, BF16, F16): what its files share. Kernels know floats; two-byte
 * elements are converted to and from them in pieces that stay in cache. */
#ifndef COMPUTE_CPU_H
#define COMPUTE_CPU_H
#include "compute/choose.h"
#include "compute/cpu_kernels.h"
#include "compute/queue.h"

/* Fix the instruction set of the hot loops: "auto", "avx512", "avx2", "baseline". E_RESOURCE if the
 * machine lacks it. */
enum status cpu_choose(const char *isa, struct err *e) LOCAL;
void cpu_describe(char *text, size_t bytes) LOCAL; /* "oneDNN 2.6.3 (avx512)" */
const struct cpu_kernels *cpu_kernels(
    void) LOCAL; /* of the chosen set; the best one before any choice */
const struct cpu_kernels *cpu_widest(void) LOCAL;

static inline float *cpu_floats(struct operand o)
{
    BUG_IF(o.t != F32);
    return (float *)(void *)o.p.p;
}
static inline const int32_t *cpu_int32(dptr d)
{
    return (const int32_t *)(const void *)d.p;
}

/* Elements at .. at+n-1 of an operand as floats: F32 where they lie, others through `piece`. */
enum { CPU_PIECE = 1024 }; /* floats of a piece */
void cpu_load(float *to, struct operand o, int64_t at, int64_t n) LOCAL;
void cpu_store(struct operand o, int64_t at, const float *from, int64_t n) LOCAL;
static inline const float *cpu_get(struct operand o, int64_t at, int64_t n, float *piece)
{
    if (o.t == F32) {
        return cpu_floats(o) + at;
    }
    cpu_load(piece, o, at, n);
    return piece;
}
/* Where to write them; then cpu_put brings them home. */
static inline float *cpu_place(struct operand o, int64_t at, float *piece)
{
    return o.t == F32 ? cpu_floats(o) + at : piece;
}
static inline void cpu_put(struct operand o, int64_t at, const float *piece, int64_t n)
{
    if (o.t != F32) {
        cpu_store(o, at, piece, n);
    }
}

/* A matrix of floats, rows `ld` apart: F32 where it lies, others made in `work`, `ld_work` apart.
 */
struct cpu_panel {
    const float *p;
    int64_t ld;
};
struct cpu_panel cpu_panel(struct operand o, int64_t ld, int64_t rows, int64_t cols, float *work,
                           int64_t ld_work) LOCAL;

/* Pieces of 0 .. n-1: `here` elements from `at`. */
#define CPU_EACH_PIECE(at, here, n)                                \
    for (int64_t at = 0, here = min_i64(CPU_PIECE, (n)); here > 0; \
         at += here, here = min_i64(CPU_PIECE, (n)-at))

/* The queue, with working memory for products (queue_free gives it back) */
enum status cpu_queue_create(struct queue **q, int threads, int local_rank, struct err *e) LOCAL;
void cpu_convert(struct queue *q, struct operand dst, struct operand src, int64_t n) LOCAL;

/* cpu_products.c. C[M,N] = alpha op(A) op(B) + beta C by one thread; 't' transposes. C is not read
 * when beta is 0. Call cpu_products_begin(q) before the parallel region of every operation that
 * uses it. */
void cpu_products_begin(const struct queue *q) LOCAL;
void cpu_product(char op_a, char op_b, int64_t M, int64_t N, int64_t K, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) LOCAL;
int cpu_has_products(void) LOCAL;
const char *cpu_products_library(void) LOCAL; /* "oneDNN 2.6.3" */

/* The slots of ops_cpu, by file; contracts in ops.h. cpu_products.c */
void cpu_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                struct operand w, int64_t T, int64_t N, int64_t K, int add) LOCAL;
void cpu_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                           int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K,
                           int add) LOCAL;
void cpu_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                            struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K) LOCAL;
double cpu_measure_peak(struct queue *q, enum dtype t, double seconds) LOCAL;

/* cpu_rows.c */
void cpu_add(struct queue *q, struct operand y, struct operand a, struct operand b,
             int64_t n) LOCAL;
void cpu_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
              int64_t N) LOCAL;
void cpu_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                   int64_t N) LOCAL;
void cpu_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
               int64_t rows, int64_t T, int64_t D) LOCAL;
void cpu_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                    int64_t rows, int64_t T, int64_t D) LOCAL;
void cpu_rope(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
              int64_t T, int heads, int64_t K, int sign) LOCAL;
void cpu_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F) LOCAL;
void cpu_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                     int64_t T, int64_t F) LOCAL;

/* cpu_norm.c */
void cpu_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                 struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                 struct operand w, int64_t T, int heads, int64_t K, double eps) LOCAL;
void cpu_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                            struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                            struct operand rstd, struct operand w, int64_t T, int heads,
                            int64_t K) LOCAL;
void cpu_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                             struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                             int heads, int64_t K) LOCAL;

/* cpu_loss.c */
void cpu_softmax_stats(struct queue *q, struct operand stats, struct operand logits, dptr labels,
                       int64_t T, int64_t rows, int64_t first, int64_t real) LOCAL;
void cpu_softmax_grad(struct queue *q, struct operand dlogits, struct operand logits,
                      struct operand lse, dptr labels, double scale, int64_t T, int64_t rows,
                      int64_t first, int64_t real) LOCAL;
void cpu_square_sums(struct queue *q, dptr sums, struct operand g, dptr at, dptr n,
                     int64_t runs) LOCAL;
void cpu_adamw(struct queue *q, struct operand w, struct operand m, struct operand v,
               struct operand g, struct operand copy, dptr clip, const struct adamw_step *s,
               int64_t n) LOCAL;

/* cpu_attention.c */
void cpu_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                   struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                   const struct attention_shape *s, int merge, dptr scratch) LOCAL;
void cpu_attention_delta(struct queue *q, struct operand delta, struct operand o,
                         struct operand dout, const struct attention_shape *s) LOCAL;
void cpu_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                        struct operand dout, struct operand qq, struct operand k, struct operand v,
                        struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                        dptr kplace, const struct attention_shape *s, int add, dptr scratch) LOCAL;
size_t cpu_attention_scratch(const struct attention_shape *s, enum dtype t, int threads) LOCAL;
#endif
