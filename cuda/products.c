#include "cuda/host.h"

#include <cublas_v2.h>
#include <limits.h>

static void blas_check(cublasStatus_t s, const char *what)
{
    if (s != CUBLAS_STATUS_SUCCESS) {
        die(E_PEER, "cuBLAS, %s: %s", what, cublasGetStatusString(s));
    }
}

/* float32 without TF32; sums of bfloat16 and float16 products in float32 from end to end. */
enum status cuda_products_create(struct queue *q, struct err *e)
{
    const int mode = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    cublasHandle_t blas = NULL;
    cublasStatus_t s = cublasCreate(&blas);
    q->blas = blas;
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasSetStream(blas, q->stream); /* before the workspace, which it would reset */
    }
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasSetWorkspace(blas, q->workspace, q->workspace_bytes);
    }
    if (s == CUBLAS_STATUS_SUCCESS) {
        s = cublasSetMathMode(blas, (cublasMath_t)mode);
    }
    return s == CUBLAS_STATUS_SUCCESS
               ? OK
               : err_set(e, E_RESOURCE, "cuBLAS does not start: %s", cublasGetStatusString(s));
}

void cuda_products_free(struct queue *q)
{
    if (q->blas) {
        cublasDestroy((cublasHandle_t)q->blas);
    }
}

static cudaDataType type_of(struct operand o)
{
    static const cudaDataType types[DTYPE_N] = {
        [F32] = CUDA_R_32F, [BF16] = CUDA_R_16BF, [F16] = CUDA_R_16F
    };
    BUG_IF(o.t != F32 && o.t != BF16 && o.t != F16);
    return types[o.t];
}

static int int_of(int64_t n)
{
    BUG_IF(n < 0 || n > INT_MAX);
    return (int)n;
}

/* cuBLAS counts by columns: to it a row-major matrix is its transpose. C [cols, rows] in its eyes =
 * op(A) op(B) over `depth`. */
struct product {
    const char *name;
    struct operand a, b, c;
    int64_t lda, ldb, ldc;
    cublasOperation_t op_a, op_b;
    int64_t m, n, depth;
    int add;
};

static void product_run(struct queue *q, const struct product *p)
{
    const float alpha = 1, beta = p->add ? 1 : 0;
    size_t size = dtype_size(p->c.t);
    if (p->m == 0 || p->n == 0 || (p->depth == 0 && p->add)) {
        return;
    }
    for (int64_t i = 0; i < p->n && p->depth == 0; i++) {
        cuda_zero(q, operand_at(p->c, i * p->ldc).p, (size_t)p->m * size);
    }
    if (p->depth == 0) {
        return;
    }
    BUG_IF(p->a.t != p->b.t || (p->c.t != p->a.t && p->c.t != F32));
    blas_check(cublasGemmEx((cublasHandle_t)q->blas, p->op_a, p->op_b, int_of(p->m), int_of(p->n),
                            int_of(p->depth), &alpha, p->a.p.p, type_of(p->a), int_of(p->lda),
                            p->b.p.p, type_of(p->b), int_of(p->ldb), &beta, p->c.p.p, type_of(p->c),
                            int_of(p->ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
               p->name);
}

/* y' [N,T] = w x' */
void cuda_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                 struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    product_run(q, &(struct product){ "linear", w, x, y, K, ldx, ldy, CUBLAS_OP_T, CUBLAS_OP_N, N,
                                      T, K, add });
}

/* dx' [K,T] = w' dy' */
void cuda_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                            int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    product_run(q, &(struct product){ "linear_grad_input", w, dy, dx, K, ldy, ldx, CUBLAS_OP_N,
                                      CUBLAS_OP_N, K, T, N, add });
}

/* dw' [K,N] += x' dy */
void cuda_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                             struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K)
{
    product_run(q, &(struct product){ "linear_grad_weight", x, dy, dw, ldx, ldy, K, CUBLAS_OP_N,
                                      CUBLAS_OP_T, K, N, T, 1 });
}
