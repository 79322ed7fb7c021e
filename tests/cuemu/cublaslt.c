/* cublaslt.c - cublasLt over the emulated cublasGemmEx: one product, no epilogue, C is D. */
#include "cublasLt.h"

#include <stdlib.h>

struct cublaslt_desc {
    cublasComputeType_t compute;
    cublasOperation_t op_a, op_b;
};
struct cublaslt_layout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
};
struct cublaslt_preference {
    size_t workspace;
};

enum { RUNS, REFUSED, SUGGESTED }; /* algorithms: data[0] */

/* The handle is one of cuBLAS. */
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    return cublasCreate((cublasHandle_t *)(void *)handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return cublasDestroy((cublasHandle_t)(void *)handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    *desc = calloc(1, sizeof **desc);
    if (!*desc) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    (*desc)->compute = compute;
    return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    if (bytes != sizeof(cublasOperation_t)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *(name == CUBLASLT_MATMUL_DESC_TRANSA ? &desc->op_a : &desc->op_b) =
        *(const cublasOperation_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    if (ld < (int64_t)rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *layout = malloc(sizeof **layout);
    if (!*layout) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    **layout = (struct cublaslt_layout){ type, rows, cols, ld };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof **preference);
    return *preference ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes)
{
    if (name != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || bytes != sizeof(size_t)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    preference->workspace = *(const size_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

/* op(A) [m, k], op(B) [k, n], C and D [m, n] */
static int fits(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                cublasLtMatrixLayout_t c)
{
    uint64_t m = desc->op_a == CUBLAS_OP_N ? a->rows : a->cols;
    uint64_t k = desc->op_a == CUBLAS_OP_N ? a->cols : a->rows;
    uint64_t k_b = desc->op_b == CUBLAS_OP_N ? b->rows : b->cols;
    uint64_t n = desc->op_b == CUBLAS_OP_N ? b->cols : b->rows;

    return m == c->rows && n == c->cols && k == k_b;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t *found, int *n)
{
    (void)handle;
    *n = 0;
    if (c != d || !fits(desc, a, b, c)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (int i = 0; i < SUGGESTED && i < requested; i++) {
        found[i] = (cublasLtMatmulHeuristicResult_t){ .workspaceSize = preference->workspace };
        found[i].algo.data[0] = (uint64_t)i;
        *n = i + 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    cublasHandle_t blas = (cublasHandle_t)(void *)handle;
    uint64_t k = desc->op_a == CUBLAS_OP_N ? a_layout->cols : a_layout->rows;

    if (algo->data[0] != RUNS) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (c != d || c_layout != d_layout || !fits(desc, a_layout, b_layout, c_layout)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    cublasSetStream(blas, stream);
    cublasSetWorkspace(blas, workspace, workspace_bytes);
    return cublasGemmEx(blas, desc->op_a, desc->op_b, (int)c_layout->rows, (int)c_layout->cols,
                        (int)k, alpha, a, a_layout->type, (int)a_layout->ld, b, b_layout->type,
                        (int)b_layout->ld, beta, d, c_layout->type, (int)c_layout->ld,
                        desc->compute, CUBLAS_GEMM_DEFAULT);
}
