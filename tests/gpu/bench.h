/* Measurements on a GPU (tests/gpu/run.sh), and with --tiny under the emulation. Each prints rows
 * of the table: item, result, goal, verdict, with tabs between. */
#ifndef TESTS_GPU_BENCH_H
#define TESTS_GPU_BENCH_H
#include "compute/ops.h"

enum { BENCH_BUFFERS = 24 };

struct bench {
    const struct ops *ops;
    struct queue *q;
    int tiny;    /* sizes for the emulation: no goals                     */
    int quick;   /* fewer shapes                                          */
    double peak; /* nominal dense FLOP/s in bfloat16                      */
    double copy; /* bytes read and written per second by a copy made here */
    struct {
        dptr p;
        size_t bytes;
    } buffer[BENCH_BUFFERS];
    int buffers;
};

/* ---- memory of the device, until bench_drop ---- */

struct operand bench_take(struct bench *b, int64_t n, enum dtype t) LOCAL;
/* Normal numbers times `scale`, in F32, BF16 or F16. */
struct operand bench_numbers(struct bench *b, int64_t n, enum dtype t, double scale) LOCAL;
dptr bench_ints(struct bench *b, const int32_t *x, int64_t n) LOCAL;
/* The first n elements as numbers. */
void bench_fetch(struct bench *b, float *x, struct operand o, int64_t n) LOCAL;
void bench_drop(struct bench *b) LOCAL;

/* ---- time ---- */

typedef void bench_call(struct bench *b, const void *with);
/* Seconds of one call: the median over rounds of calls queued one after the other, by the wall
 * clock with the queue empty before and after. */
double bench_time(struct bench *b, bench_call *call, const void *with) LOCAL;
/* The same in one short round. */
double bench_time_once(struct bench *b, bench_call *call, const void *with) LOCAL;

/* ---- rows ---- */

/* value >= goal passes; a goal of 0: a row without verdict. goal_text may be NULL then. */
void bench_row(const struct bench *b, const char *item, double value, double goal,
               const char *goal_text, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 6, 7)));
/* A row that was not measured. */
void bench_skip(const char *item, const char *why) LOCAL;
/* rms of a - b over rms of b */
double bench_difference(const float *a, const float *b, int64_t n) LOCAL;

/* ---- what is measured ---- */

void bench_rows(struct bench *b) LOCAL; /* rows.c: b->copy, then what is no product */
void bench_products(struct bench *b) LOCAL;
void bench_attention(struct bench *b) LOCAL;
#endif
