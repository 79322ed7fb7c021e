/* How fast the CPU backend's operations are: products and attention as shares of the peak measured
 * here, the rest in GB/s. bench/ops [threads [isa [backend]]]; threads are pinned to the first
 * cores that the process may use. The best call counts, and the best peak, since other load only
 * ever slows a call down. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/clock.h"
#include "base/rng.h"
#include "compute/choose.h"

enum {
    T = 2048,
    D = 512,
    F = 1408,
    V = 32000,
    S = 512,
    B = T / S,
    H = 8,
    K = 64,
    HEAD_ROWS = 512,
    REPEATS = 7,
    BUFFERS = 6
};
static const double SECONDS = 0.3; /* per row, at least REPEATS calls */
enum { LARGE = 40 * 1000 * 1000 }; /* floats of a buffer */

struct bench {
    const struct ops *ops;
    struct queue *q;
    struct operand b[BUFFERS]; /* [LARGE] of normal numbers times 0.02 */
    dptr place, start, label, scratch, clip;
    struct attention_shape shape;
};

/* ---- the calls; b[0] is the first output ---- */
#define CALL(name) static void name(const struct bench *b, int64_t N, int64_t M)
CALL(forward)
{
    b->ops->linear(b->q, b->b[0], N, b->b[1], M, b->b[2], N == V ? HEAD_ROWS : T, N, M, 0);
}
CALL(grad_input)
{
    b->ops->linear_grad_input(b->q, b->b[0], M, b->b[1], N, b->b[2], N == V ? HEAD_ROWS : T, N, M,
                              0);
}
CALL(grad_weight)
{
    b->ops->linear_grad_weight(b->q, b->b[0], b->b[1], N, b->b[2], M, N == V ? HEAD_ROWS : T, N, M);
}
CALL(small_forward)
{
    b->ops->linear(b->q, b->b[0], N, b->b[1], M, b->b[2], 64, N, M, 0);
}
CALL(attend)
{
    (void)N, (void)M;
    b->ops->attention(b->q, b->b[0], b->b[5], b->b[1], operand_at(b->b[1], D),
                      operand_at(b->b[1], 2 * D), b->place, b->start, b->place, &b->shape, 0,
                      b->scratch);
}
CALL(attend_grad)
{
    struct operand dq = b->b[0], q = b->b[1];
    (void)N, (void)M;
    b->ops->attention_grad(b->q, dq, operand_at(dq, D), operand_at(dq, 2 * D), b->b[2], q,
                           operand_at(q, D), operand_at(q, 2 * D), b->b[3], b->b[4], b->place,
                           b->start, b->place, &b->shape, 0, b->scratch);
}
CALL(delta)
{
    (void)N, (void)M;
    b->ops->attention_delta(b->q, b->b[0], b->b[1], b->b[2], &b->shape);
}
CALL(norm)
{
    (void)M;
    b->ops->rmsnorm(b->q, b->b[0], N, b->b[5], b->b[3], b->b[1], N, b->b[2], b->b[4], T, 1, N,
                    1e-5);
}
CALL(norm_grad)
{
    (void)M;
    b->ops->rmsnorm_grad_input(b->q, b->b[0], N, b->b[1], b->b[2], N, b->b[3], N, b->b[5], b->b[4],
                               T, 1, N);
}
CALL(norm_weight)
{
    (void)M;
    b->ops->rmsnorm_grad_weight(b->q, b->b[0], b->b[2], N, b->b[3], N, b->b[5], T, 1, N);
}
CALL(rope)
{
    (void)N, (void)M;
    b->ops->rope(b->q, b->b[0], 3 * D, b->b[1], b->place, T, 2 * H, K, 1);
}
CALL(gate)
{
    (void)M;
    b->ops->swiglu(b->q, b->b[0], b->b[1], T, N);
}
CALL(gate_grad)
{
    (void)M;
    b->ops->swiglu_grad(b->q, b->b[0], b->b[1], b->b[2], T, N);
}
CALL(sum)
{
    (void)M;
    b->ops->add(b->q, b->b[0], b->b[0], b->b[1], N);
}
CALL(copy)
{
    (void)M;
    b->ops->copy(b->q, b->b[0].p, b->b[1].p, (size_t)N * 4);
}
CALL(embed)
{
    (void)M;
    b->ops->embed(b->q, b->b[0], b->b[1], b->label, 0, V, T, N);
}
CALL(embed_grad)
{
    (void)M;
    b->ops->embed_grad(b->q, b->b[0], b->b[1], b->label, 0, V, T, N);
}
CALL(stats)
{
    (void)M;
    b->ops->softmax_stats(b->q, b->b[5], b->b[0], b->label, HEAD_ROWS, N, 0, N);
}
CALL(loss_grad)
{
    (void)M;
    b->ops->softmax_grad(b->q, b->b[0], b->b[0], b->b[5], b->label, 1e-3, HEAD_ROWS, N, 0, N);
}
CALL(adamw)
{
    static const struct adamw_step step = { 0.9, 0.95, 1e-8, 1e-4, 0.1, 0.1, 0.05 };
    (void)M;
    b->ops->adamw(b->q, b->b[0], b->b[1], b->b[2], b->b[3], OPERAND_NONE, b->clip, &step, N);
}
CALL(squares)
{
    static int64_t at[LARGE / 4096], n[LARGE / 4096];
    int64_t runs = N / 4096;
    (void)M;
    for (int64_t i = 0; i < runs; i++) {
        at[i] = i * 4096;
        n[i] = 4096;
    }
    b->ops->square_sums(b->q, b->b[5].p, b->b[0], (dptr){ (char *)at }, (dptr){ (char *)n }, runs);
}

static const struct {
    const char *name;
    void (*call)(const struct bench *b, int64_t N, int64_t M);
    int64_t N, M;
    double flop, bytes;
} rows[] = {
    { "linear, qkv", forward, 3 * D, D, 2.0 * T * 3 * D *D, 0 },
    { "linear, out", forward, D, D, 2.0 * T *D *D, 0 },
    { "linear, gate and up", forward, 2 * F, D, 2.0 * T * 2 * F *D, 0 },
    { "linear, down", forward, D, F, 2.0 * T *D *F, 0 },
    { "linear, head, 512 rows", forward, V, D, 2.0 * HEAD_ROWS *V *D, 0 },
    { "linear, qkv, 64 rows", small_forward, 3 * D, D, 2.0 * 64 * 3 * D *D, 0 },
    { "linear_grad_input, gate and up", grad_input, 2 * F, D, 2.0 * T * 2 * F *D, 0 },
    { "linear_grad_input, down", grad_input, D, F, 2.0 * T *D *F, 0 },
    { "linear_grad_input, head", grad_input, V, D, 2.0 * HEAD_ROWS *V *D, 0 },
    { "linear_grad_weight, gate and up", grad_weight, 2 * F, D, 2.0 * T * 2 * F *D, 0 },
    { "linear_grad_weight, down", grad_weight, D, F, 2.0 * T *D *F, 0 },
    { "linear_grad_weight, head", grad_weight, V, D, 2.0 * HEAD_ROWS *V *D, 0 },
    { "attention, causal half", attend, 0, 0, 4.0 * B *H *S *(S / 2.0) * K, 0 },
    { "attention_grad, causal half", attend_grad, 0, 0, 10.0 * B *H *S *(S / 2.0) * K, 0 },
    { "attention_delta", delta, 0, 0, 0, 8.0 * T *D },
    { "rmsnorm with residual", norm, D, 0, 0, 16.0 * T *D },
    { "rmsnorm_grad_input", norm_grad, D, 0, 0, 16.0 * T *D },
    { "rmsnorm_grad_weight", norm_weight, D, 0, 0, 8.0 * T *D },
    { "rope", rope, 0, 0, 0, 8.0 * T * 2 * D },
    { "swiglu", gate, F, 0, 0, 12.0 * T *F },
    { "swiglu_grad", gate_grad, F, 0, 0, 20.0 * T *F },
    { "add", sum, LARGE, 0, 0, 12.0 * LARGE },
    { "copy", copy, LARGE, 0, 0, 8.0 * LARGE },
    { "embed", embed, D, 0, 0, 8.0 * T *D },
    { "embed_grad", embed_grad, D, 0, 0, 12.0 * T *D },
    { "softmax_stats", stats, V, 0, 0, 4.0 * HEAD_ROWS *V },
    { "softmax_grad", loss_grad, V, 0, 0, 8.0 * HEAD_ROWS *V },
    { "adamw", adamw, LARGE, 0, 0, 28.0 * LARGE },
    { "square_sums", squares, LARGE, 0, 0, 4.0 * LARGE },
};

static void pin_threads(int threads)
{
    cpu_set_t own;
    int cores[CPU_SETSIZE], n = 0;
    sched_getaffinity(0, sizeof own, &own);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &own)) {
            cores[n++] = i;
        }
    }
#pragma omp parallel num_threads(threads)
    {
        int mine = 0;
#ifdef _OPENMP
        mine = omp_get_thread_num();
#endif
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cores[mine % n], &one);
        sched_setaffinity(0, sizeof one, &one);
    }
}

static void fill(struct operand o, uint64_t what, double scale)
{
    float *x = (float *)(void *)o.p.p;
    for (int64_t i = 0; i < LARGE; i++) {
        x[i] = i < 1 << 16 ? (float)(scale * rng_normal(1, what, (uint64_t)i)) : x[i % (1 << 16)];
    }
}

static void set_up(struct bench *b, int threads)
{
    int32_t *ints = mem_take(sizeof *ints * 3 * T);
    double *clip = mem_take(sizeof *clip);
    struct err e = { { 0 } };
    if (b->ops->queue_create(&b->q, threads, 0, &e) != OK) {
        die(E_BUG, "%s", e.text);
    }
    b->shape = (struct attention_shape){ B, S, S, H, H, K, 3 * D, 3 * D, D, 0.125 };
    b->scratch.p = mem_take(b->ops->attention_scratch(&b->shape, F32, threads));
    for (int i = 0; i < BUFFERS; i++) {
        b->b[i] = (struct operand){ { mem_take(sizeof(float) * LARGE) }, F32 };
        fill(b->b[i], (uint64_t)i, 0.02);
    }
    for (int t = 0; t < T; t++) {
        ints[t] = t % S;
        ints[2 * T + t] = (int32_t)(rng_u64(2, 1, (uint64_t)t) % V);
    }
    *clip = 1;
    b->place.p = (char *)ints;
    b->start.p = (char *)(ints + T);
    b->label.p = (char *)(ints + 2 * T);
    b->clip.p = (char *)clip;
}

static double best_time(const struct bench *b, int row)
{
    double best = INFINITY, end = clock_now() + SECONDS;
    for (int k = 0; k < REPEATS || clock_now() < end; k++) {
        double start = clock_now();
        rows[row].call(b, rows[row].N, rows[row].M);
        b->ops->sync(b->q);
        best = fmin(best, clock_now() - start);
    }
    return best;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    struct bench b = { 0 };
    struct err e = { { 0 } };
    if (ops_choose(&b.ops, argc > 3 ? argv[3] : "cpu", argc > 2 ? argv[2] : "auto", F32, &e) !=
        OK) {
        fprintf(stderr, "%s\n", e.text);
        return E_INPUT;
    }
    pin_threads(threads);
    set_up(&b, threads);
    double peak = 0, best[COUNT_OF(rows)];
    for (int i = 0; i < COUNT_OF(rows); i++) {
        peak = fmax(peak, b.ops->measure_peak(b.q, F32, 0.05));
        best[i] = best_time(&b, i);
    }
    printf("%s, %d threads, peak %.0f GFLOP/s\n", ops_describe(), threads, 1e-9 * peak);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        printf("%-34s %9.3f ms ", rows[i].name, 1e3 * best[i]);
        if (rows[i].flop > 0) {
            printf("%7.1f GFLOP/s %5.1f %%\n", 1e-9 * rows[i].flop / best[i],
                   100 * rows[i].flop / best[i] / peak);
        } else {
            printf("%7.1f GB/s\n", 1e-9 * rows[i].bytes / best[i]);
        }
    }
    return 0;
}
