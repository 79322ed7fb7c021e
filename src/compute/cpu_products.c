#include "compute/cpu.h"

#include <stdio.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined HAVE_DNNL && defined HAVE_ONEAPI_DNNL_DNNL_H
#include <oneapi/dnnl/dnnl.h>
#elif defined HAVE_DNNL
#include <dnnl.h>
#elif defined HAVE_CBLAS
#include <cblas.h>
#endif

#include "base/clock.h"

/* Each thread makes its own part of a product with a single-threaded call, so that the split is
 * ours: columns of the result. */
enum { COLUMN_GRAIN = 16, WEIGHT_ROWS = 512 };

#if defined HAVE_DNNL
int cpu_has_products(void)
{
    return 1;
}

const char *cpu_products_library(void)
{
    static char name[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(name, sizeof name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return name;
}

/* oneDNN takes the calling thread's number of OpenMP threads unless it runs inside a parallel
 * region of several. */
void cpu_products_begin(const struct queue *q)
{
#ifdef _OPENMP
    if (q->threads == 1) {
        omp_set_num_threads(1);
    }
#endif
    (void)q;
}

void cpu_product(char op_a, char op_b, int64_t M, int64_t N, int64_t K, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (dnnl_sgemm(op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc) != dnnl_success) {
        die(E_RESOURCE, "oneDNN failed in a product of %lld x %lld x %lld: is memory short?",
            (long long)M, (long long)N, (long long)K);
    }
}
#elif defined HAVE_CBLAS
/* OpenBLAS alone has these; another library leaves them NULL. */
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern int openblas_get_parallel(void) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

static int needs_lock; /* its serial build is not safe to call from several threads at once */

int cpu_has_products(void)
{
    return 1;
}

const char *cpu_products_library(void)
{
    static char name[64];
    int words = 0, i = 0;
    if (!openblas_get_config) {
        return "CBLAS";
    }
    for (const char *s = openblas_get_config(); *s && i < COUNT_OF(name) - 1;
         s++) { /* "OpenBLAS 0.3.21 options..." */
        words += *s == ' ';
        if (words == 2) {
            break;
        }
        name[i++] = *s;
    }
    name[i] = 0;
    return name;
}

void cpu_products_begin(const struct queue *q)
{
    if (openblas_set_num_threads) {
        openblas_set_num_threads(1);
    }
    needs_lock = q->threads > 1 && openblas_get_parallel && openblas_get_parallel() == 0;
}

static void call_library(char op_a, char op_b, int64_t M, int64_t N, int64_t K, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                         float *c, int64_t ldc)
{
    cblas_sgemm(CblasRowMajor, op_a == 't' ? CblasTrans : CblasNoTrans,
                op_b == 't' ? CblasTrans : CblasNoTrans, (int)M, (int)N, (int)K, alpha, a, (int)lda,
                b, (int)ldb, beta, c, (int)ldc);
}

void cpu_product(char op_a, char op_b, int64_t M, int64_t N, int64_t K, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (needs_lock) {
#pragma omp critical(serial_library)
        call_library(op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    } else {
        call_library(op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    }
}
#else
int cpu_has_products(void)
{
    return 0;
}
const char *cpu_products_library(void)
{
    return "no library for products";
}
void cpu_products_begin(const struct queue *q)
{
    (void)q;
}

void cpu_product(char op_a, char op_b, int64_t M, int64_t N, int64_t K, float alpha, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    (void)op_a, (void)op_b, (void)M, (void)N, (void)K, (void)alpha, (void)a, (void)lda, (void)b,
        (void)ldb, (void)beta, (void)c, (void)ldc;
    die(E_BUG, "this build has no library for products");
}
#endif

void cpu_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    float *out = cpu_floats(y);
    const float *in = cpu_floats(x), *weight = cpu_floats(w);
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, COLUMN_GRAIN);
        if (T > 0 && s.count > 0) {
            cpu_product('n', 't', T, s.count, K, 1, in, ldx, weight + s.first * K, K, (float)!!add,
                        out + s.first, ldy);
        }
    }
}

void cpu_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                           int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    float *out = cpu_floats(dx);
    const float *in = cpu_floats(dy), *weight = cpu_floats(w);
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, K, COLUMN_GRAIN);
        if (T > 0 && s.count > 0) {
            cpu_product('n', 'n', T, s.count, N, 1, in, ldy, weight + s.first, K, (float)!!add,
                        out + s.first, ldx);
        }
    }
}

/* dw is split by its rows: each thread reads its own columns of dy and all of x, a few rows of dw
 * at a time, so that what oneDNN packs of dy stays in cache. */
void cpu_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                            struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K)
{
    float *out = cpu_floats(dw);
    const float *grad = cpu_floats(dy), *in = cpu_floats(x);
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, COLUMN_GRAIN);
        int64_t end = s.first + s.count;
        for (int64_t n = s.first; T > 0 && n < end; n += WEIGHT_ROWS) {
            cpu_product('t', 'n', min_i64(WEIGHT_ROWS, end - n), K, T, 1, grad + n, ldy, in, ldx, 1,
                        out + n * K, K);
        }
    }
}

/* The widest fused multiply-add of the machine, whatever set was chosen: the library for products
 * knows no choice. The best of some intervals, each long against the system's time slices, so that
 * ranks that share a core share its rate. */
double cpu_measure_peak(struct queue *q, enum dtype t, double seconds)
{
    enum { INTERVALS = 5 };
    const struct cpu_kernels *widest = cpu_widest();
    double best = 0;
    BUG_IF(t != F32);
    for (int i = 0; i < INTERVALS; i++) {
        double flop = 0, start = clock_now();
#pragma omp parallel num_threads(q->threads) if (q->threads > 1) reduction(+ : flop)
        do {
            volatile float sink = widest->peak(100);
            flop += sink == 0 ? 0 : 100 * (double)widest->peak_flop;
        } while (clock_now() - start < seconds / INTERVALS);
        double rate = flop / (clock_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}
