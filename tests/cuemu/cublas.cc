/* cublas.cc - products in stream order, by plain loops: operands of float32, bfloat16 or float16,
 * sums in float32, one rounding of the result. */
#include "cublas_v2.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "machine.h"
#include <cstdint>
#include <vector>

struct cublasContext {
    int device;
    cudaStream_t stream;
    void *workspace; /* NULL: the library would take memory by itself */
    size_t workspace_bytes;
    int mode;
};

namespace
{

size_t size_of(cudaDataType t)
{
    return t == CUDA_R_32F ? 4 : 2;
}

float load(const char *p, cudaDataType t)
{
    if (t == CUDA_R_32F) {
        float f;
        __builtin_memcpy(&f, p, 4);
        return f;
    }
    unsigned short bits;
    __builtin_memcpy(&bits, p, 2);
    return t == CUDA_R_16BF ? (float)__ushort_as_bfloat16(bits) : (float)__ushort_as_half(bits);
}

void store(char *p, cudaDataType t, float f)
{
    if (t == CUDA_R_32F) {
        __builtin_memcpy(p, &f, 4);
        return;
    }
    unsigned short bits = t == CUDA_R_16BF ? __bfloat16_as_ushort(__float2bfloat16(f))
                                           : __half_as_ushort(__float2half(f));
    __builtin_memcpy(p, &bits, 2);
}

/* A matrix as it lies, by columns. */
struct matrix {
    char *p;
    cudaDataType t;
    int64_t rows, cols, ld;
    char *at(int64_t row, int64_t col) const
    {
        return p + (size_t)(row + col * ld) * size_of(t);
    }
};

bool known_type(cudaDataType t)
{
    return t == CUDA_R_32F || t == CUDA_R_16BF || t == CUDA_R_16F;
}

/* In device memory from the first to the last element, which is what a device would fault on. */
bool reachable(const matrix &x)
{
    cudaPointerAttributes first, last;

    if (x.rows == 0 || x.cols == 0)
        return true;
    cudaPointerGetAttributes(&first, x.p);
    cudaPointerGetAttributes(&last, x.at(x.rows - 1, x.cols - 1) + size_of(x.t) - 1);
    return first.type == cudaMemoryTypeDevice && last.type == cudaMemoryTypeDevice;
}

bool aligned(const matrix &x)
{
    return reinterpret_cast<uintptr_t>(x.p) % size_of(x.t) == 0;
}

struct gemm {
    matrix a, b, c;
    bool a_turned, b_turned;
    int64_t depth;
    float alpha, beta;
};

void note(const gemm &g)
{
    for (int64_t j = 0; j < g.a.cols; j++)
        cuemu::note_read(g.a.at(0, j), (size_t)g.a.rows * size_of(g.a.t));
    for (int64_t j = 0; j < g.b.cols; j++)
        cuemu::note_read(g.b.at(0, j), (size_t)g.b.rows * size_of(g.b.t));
    for (int64_t j = 0; j < g.c.cols; j++)
        cuemu::note_write(g.c.at(0, j), (size_t)g.c.rows * size_of(g.c.t));
}

/* One column of C at a time: sums over the depth in ascending order. */
void run(const gemm &g)
{
    int64_t m = g.c.rows;
    std::vector<float> a((size_t)(m * g.depth)), sum((size_t)m);

    note(g);
    for (int64_t l = 0; l < g.depth; l++)
        for (int64_t i = 0; i < m; i++)
            a[(size_t)(l * m + i)] = load(g.a_turned ? g.a.at(l, i) : g.a.at(i, l), g.a.t);
    for (int64_t j = 0; j < g.c.cols; j++) {
        std::fill(sum.begin(), sum.end(), 0.0f);
        for (int64_t l = 0; l < g.depth; l++) {
            float b = load(g.b_turned ? g.b.at(j, l) : g.b.at(l, j), g.b.t);
            const float *column = &a[(size_t)(l * m)];
            for (int64_t i = 0; i < m; i++)
                sum[(size_t)i] += column[i] * b;
        }
        for (int64_t i = 0; i < m; i++) {
            char *to = g.c.at(i, j);
            float old = g.beta == 0 ? 0 : g.beta * load(to, g.c.t); /* C may be NaN if beta is 0 */
            store(to, g.c.t, g.alpha * sum[(size_t)i] + old);
        }
    }
}

bool fits(int ld, int rows)
{
    return ld >= (rows > 1 ? rows : 1);
}

} // namespace

const char *cublasGetStatusString(cublasStatus_t s)
{
    switch (s) {
    case CUBLAS_STATUS_SUCCESS:
        return "the operation completed successfully";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    }
    return "<unknown>";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    if (cuemu::device_error() != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{ cuemu::device_of_thread(), nullptr, nullptr, 0, 0 };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

/* The workspace becomes the library's own again. */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (reinterpret_cast<uintptr_t>(workspace) % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    const int flag = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, plain = mode & ~flag;

    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (plain != CUBLAS_DEFAULT_MATH && plain != CUBLAS_PEDANTIC_MATH &&
        plain != CUBLAS_TF32_TENSOR_OP_MATH)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void *alpha, const void *a,
                            cudaDataType a_type, int lda, const void *b, cudaDataType b_type,
                            int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    bool ta = op_a != CUBLAS_OP_N, tb = op_b != CUBLAS_OP_N;
    int a_rows = ta ? k : m, b_rows = tb ? n : k;

    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || !fits(lda, a_rows) || !fits(ldb, b_rows) || !fits(ldc, m) ||
        !alpha || !beta || algorithm != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!known_type(a_type) || a_type != b_type || (c_type != a_type && c_type != CUDA_R_32F) ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (handle->device != cuemu::device_of_thread() || !cuemu::stream_usable(handle->stream))
        cuemu::stop("cublasGemmEx with the handle or stream of another device");
    if (!handle->workspace)
        cuemu::stop("cublasGemmEx without a workspace of the caller would take memory");
    if (m == 0 || n == 0)
        return CUBLAS_STATUS_SUCCESS;
    char *pa = static_cast<char *>(const_cast<void *>(a)),
         *pb = static_cast<char *>(const_cast<void *>(b));
    gemm g = { { pa, a_type, a_rows, ta ? m : k, lda },
               { pb, b_type, b_rows, tb ? k : n, ldb },
               { static_cast<char *>(c), c_type, m, n, ldc },
               ta,
               tb,
               k,
               *static_cast<const float *>(alpha),
               *static_cast<const float *>(beta) };
    if (!reachable(g.a) || !reachable(g.b) || !reachable(g.c))
        cuemu::stop("cublasGemmEx: an operand is not in device memory");
    if (!aligned(g.a) || !aligned(g.b) || !aligned(g.c))
        cuemu::stop("cublasGemmEx: an operand is not aligned to its element");
    cuemu::enqueue(handle->stream, [g] { run(g); });
    return CUBLAS_STATUS_SUCCESS;
}
