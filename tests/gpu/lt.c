#include "tests/gpu/lt.h"

#include "cuda/queue.h"

#include <cublasLt.h>

enum { SUGGESTIONS = 16 };

struct lt {
    const struct lt_product *p;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found[SUGGESTIONS];
    int n, at; /* suggestions, the one that run() takes */
};

static void check(cublasStatus_t s, const char *what)
{
    if (s != CUBLAS_STATUS_SUCCESS) {
        die(E_PEER, "cublasLt, %s: error %d", what, (int)s);
    }
}

static cudaDataType type_of(struct operand o)
{
    return o.t == BF16 ? CUDA_R_16BF : o.t == F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* A layout is of the matrix as it lies, before op(). */
static void layout(cublasLtMatrixLayout_t *l, struct operand o, int transposed, int64_t rows,
                   int64_t cols, int64_t ld)
{
    check(cublasLtMatrixLayoutCreate(l, type_of(o), (uint64_t)(transposed ? cols : rows),
                                     (uint64_t)(transposed ? rows : cols), ld),
          "layout");
}

static void open_lt(struct lt *t, struct queue *q)
{
    const struct lt_product *p = t->p;
    cublasOperation_t op_a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    size_t bytes = q->workspace_bytes;

    check(cublasLtCreate(&t->handle), "handle");
    check(cublasLtMatmulDescCreate(&t->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "description");
    check(cublasLtMatmulDescSetAttribute(t->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a),
          "transposition");
    check(cublasLtMatmulDescSetAttribute(t->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b),
          "transposition");
    layout(&t->a, p->a, p->transpose_a, p->m, p->depth, p->lda);
    layout(&t->b, p->b, p->transpose_b, p->depth, p->n, p->ldb);
    layout(&t->c, p->c, 0, p->m, p->n, p->ldc);
    check(cublasLtMatmulPreferenceCreate(&t->preference), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(
              t->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
          "workspace");
}

static void close_lt(struct lt *t)
{
    cublasLtMatmulPreferenceDestroy(t->preference);
    cublasLtMatrixLayoutDestroy(t->a);
    cublasLtMatrixLayoutDestroy(t->b);
    cublasLtMatrixLayoutDestroy(t->c);
    cublasLtMatmulDescDestroy(t->desc);
    cublasLtDestroy(t->handle);
}

static cublasStatus_t run(struct bench *b, const struct lt *t)
{
    const float alpha = 1, beta = t->p->add ? 1 : 0;
    struct queue *q = b->q;

    return cublasLtMatmul(t->handle, t->desc, &alpha, t->p->a.p.p, t->a, t->p->b.p.p, t->b, &beta,
                          t->p->c.p.p, t->c, t->p->c.p.p, t->c, &t->found[t->at].algo, q->workspace,
                          q->workspace_bytes, q->stream);
}

static void call(struct bench *b, const void *with)
{
    check(run(b, with), "product");
}

/* Suggestions are for the shape and may still refuse: those are left out. */
static int fastest(struct bench *b, struct lt *t)
{
    double best = 0;
    int which = -1;

    for (t->at = 0; t->at < t->n; t->at++) {
        if (t->found[t->at].state != CUBLAS_STATUS_SUCCESS || run(b, t) != CUBLAS_STATUS_SUCCESS) {
            continue;
        }
        double time = bench_time_once(b, call, t);
        if (which < 0 || time < best) {
            best = time;
            which = t->at;
        }
    }
    return which;
}

enum status lt_best(struct bench *b, const struct lt_product *p, double *seconds, int *tried,
                    struct err *e)
{
    struct lt t = { .p = p };
    cublasStatus_t s;
    enum status st = OK;

    open_lt(&t, b->q);
    s = cublasLtMatmulAlgoGetHeuristic(t.handle, t.desc, t.a, t.b, t.c, t.c, t.preference,
                                       SUGGESTIONS, t.found, &t.n);
    t.at = s == CUBLAS_STATUS_SUCCESS ? fastest(b, &t) : -1;
    if (t.at < 0) {
        st = err_set(e, E_RESOURCE, "cublasLt suggests nothing (error %d)", (int)s);
    } else {
        size_t bytes = (size_t)(p->n * p->ldc) * dtype_size(p->c.t);
        *seconds = bench_time(b, call, &t);
        *tried = t.n;
        b->ops->zero(b->q, p->c.p, bytes);
        call(b, &t);
    }
    b->ops->sync(b->q);
    close_lt(&t);
    return st;
}
