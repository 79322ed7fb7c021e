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

/* C[M,N] = op(A) op(B), or C += with `add`, of operands of any types, by one thread. F32 goes to
 * the library as it lies; else blocks that fit in cache are made floats first, and sums of a block
 * of C stay floats until it is whole. */
struct product {
    struct operand c, a, b;
    int64_t ldc, lda, ldb;
    int64_t M, N, K;
    char op_a, op_b; /* 't': stored transposed */
    int add;
};

enum {
    BLOCK = 256, /* rows and columns of a block of C                     */
    DEPTH = 512, /* of its sums that are made in one call of the library */
    GAP = 16,    /* floats between rows, against conflicts in the cache  */
    PANEL = (BLOCK + GAP) * (DEPTH + GAP),
    WORK = 2 * PANEL + BLOCK * (BLOCK + GAP) /* floats per thread */
};

enum status cpu_queue_create(struct queue **q, int threads, int local_rank, struct err *e)
{
    enum status st = queue_create(q, threads, local_rank, e);
    if (st == OK) {
        (*q)->work = mem_take(sizeof(float) * WORK * (size_t)threads);
    }
    return st;
}

/* Rows m .., columns n .. of op(O); `turned`: O is stored transposed. */
static struct cpu_panel make_panel(struct operand o, int64_t ld, int turned, int64_t m, int64_t n,
                                   int64_t rows, int64_t cols, float *work)
{
    return turned ? cpu_panel(operand_at(o, n * ld + m), ld, cols, rows, work, rows + GAP)
                  : cpu_panel(operand_at(o, m * ld + n), ld, rows, cols, work, cols + GAP);
}

/* Block [M,N] of C at (m, n). */
static void make_block(const struct product *p, int64_t m, int64_t n, int64_t M, int64_t N,
                       float *work)
{
    int through = p->c.t != F32;
    float *sum = through ? work + 2 * PANEL : cpu_floats(p->c) + m * p->ldc + n;
    int64_t ld = through ? N + GAP : p->ldc;
    for (int64_t i = 0; through && p->add && i < M; i++) {
        cpu_load(sum + i * ld, p->c, (m + i) * p->ldc + n, N);
    }
    for (int64_t k = 0; k < p->K; k += DEPTH) {
        int64_t K = min_i64(DEPTH, p->K - k);
        struct cpu_panel a = make_panel(p->a, p->lda, p->op_a == 't', m, k, M, K, work);
        struct cpu_panel b = make_panel(p->b, p->ldb, p->op_b == 't', k, n, K, N, work + PANEL);
        cpu_product(p->op_a, p->op_b, M, N, K, 1, a.p, a.ld, b.p, b.ld, (float)(p->add || k > 0),
                    sum, ld);
    }
    for (int64_t i = 0; through && i < M; i++) {
        cpu_store(p->c, (m + i) * p->ldc + n, sum + i * ld, N);
    }
}

static void make_product(const struct product *p, float *work)
{
    if (p->M < 1 || p->N < 1) {
        return;
    }
    if (p->a.t == F32 && p->b.t == F32 && p->c.t == F32) {
        cpu_product(p->op_a, p->op_b, p->M, p->N, p->K, 1, cpu_floats(p->a), p->lda,
                    cpu_floats(p->b), p->ldb, (float)!!p->add, cpu_floats(p->c), p->ldc);
        return;
    }
    for (int64_t n = 0; n < p->N; n += BLOCK) {
        for (int64_t m = 0; m < p->M; m += BLOCK) {
            make_block(p, m, n, min_i64(BLOCK, p->M - m), min_i64(BLOCK, p->N - n), work);
        }
    }
}

void cpu_linear(struct queue *q, struct operand y, int64_t ldy, struct operand x, int64_t ldx,
                struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, COLUMN_GRAIN);
        struct product p = { .c = operand_at(y, s.first),
                             .a = x,
                             .b = operand_at(w, s.first * K),
                             .ldc = ldy,
                             .lda = ldx,
                             .ldb = K,
                             .M = T,
                             .N = s.count,
                             .K = K,
                             .op_a = 'n',
                             .op_b = 't',
                             .add = add };
        make_product(&p, q->work + part * (int64_t)WORK);
    }
}

void cpu_linear_grad_input(struct queue *q, struct operand dx, int64_t ldx, struct operand dy,
                           int64_t ldy, struct operand w, int64_t T, int64_t N, int64_t K, int add)
{
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, K, COLUMN_GRAIN);
        struct product p = { .c = operand_at(dx, s.first),
                             .a = dy,
                             .b = operand_at(w, s.first),
                             .ldc = ldx,
                             .lda = ldy,
                             .ldb = K,
                             .M = T,
                             .N = s.count,
                             .K = N,
                             .op_a = 'n',
                             .op_b = 'n',
                             .add = add };
        make_product(&p, q->work + part * (int64_t)WORK);
    }
}

/* dw is split by its rows: each thread reads its own columns of dy and all of x, a few rows of dw
 * at a time, so that what oneDNN packs of dy stays in cache. */
void cpu_linear_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t ldy,
                            struct operand x, int64_t ldx, int64_t T, int64_t N, int64_t K)
{
    cpu_products_begin(q);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, COLUMN_GRAIN);
        int64_t end = s.first + s.count;
        for (int64_t n = s.first; T > 0 && n < end; n += WEIGHT_ROWS) {
            struct product p = { .c = operand_at(dw, n * K),
                                 .a = operand_at(dy, n),
                                 .b = x,
                                 .ldc = K,
                                 .lda = ldy,
                                 .ldb = ldx,
                                 .M = min_i64(WEIGHT_ROWS, end - n),
                                 .N = K,
                                 .K = T,
                                 .op_a = 't',
                                 .op_b = 'n',
                                 .add = 1 };
            make_product(&p, q->work + part * (int64_t)WORK);
        }
    }
}

/* The widest fused multiply-add of the machine, whatever set was chosen: the library for products
 * knows no choice. Two-byte types are multiplied as floats, so theirs is the same. The best of some
 * intervals, each long against the system's time slices, so that ranks that share a core share its
 * rate. */
double cpu_measure_peak(struct queue *q, enum dtype t, double seconds)
{
    enum { INTERVALS = 5 };
    const struct cpu_kernels *widest = cpu_widest();
    double best = 0;
    BUG_IF(t == F64);
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
