/* bench [--tiny] [--quick] [ops] [products] [attention]   rows of measurements [all]
 * bench --device                   the device in words, then how many there are; exit 6: none, why
 * bench --ids FILE COUNT VOCAB     raw uint32 token ids for pretrain-data import */
#include "tests/gpu/bench.h"

#include "base/clock.h"
#include "base/rng.h"
#include "cuda/host.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, TABLE = 1 << 20, MOST_CALLS = 1 << 20 };
static const double ROUND = 0.05, SHORT_ROUND = 0.01; /* seconds */

/* ---- memory ---- */

struct operand bench_take(struct bench *b, int64_t n, enum dtype t)
{
    size_t bytes = (size_t)n * dtype_size(t);
    dptr p = { b->ops->memory->take(bytes) };

    if (!p.p || b->buffers == BENCH_BUFFERS) {
        die(E_RESOURCE, "no %zu MiB of device memory for the benchmark", bytes >> 20);
    }
    b->buffer[b->buffers].p = p;
    b->buffer[b->buffers++].bytes = bytes;
    return (struct operand){ p, t };
}

void bench_drop(struct bench *b)
{
    b->ops->sync(b->q);
    while (b->buffers > 0) {
        b->buffers--;
        b->ops->memory->give(b->buffer[b->buffers].p.p, b->buffer[b->buffers].bytes);
    }
}

/* TABLE numbers, then copies of them. */
struct operand bench_numbers(struct bench *b, int64_t n, enum dtype t, double scale)
{
    static float table[TABLE];
    struct operand o = bench_take(b, n, t);
    int64_t have = n < TABLE ? n : TABLE;
    void *typed = mem_take((size_t)have * dtype_size(t));

    for (int64_t i = 0; i < have; i++) {
        table[i] = (float)(scale * rng_normal(1, (uint64_t)b->buffers, (uint64_t)i));
    }
    dtype_convert(typed, t, table, F32, have);
    b->ops->upload(b->q, o.p, typed, (size_t)have * dtype_size(t));
    mem_give(typed);
    for (int64_t more; have < n; have += more) {
        more = have < n - have ? have : n - have;
        b->ops->copy(b->q, operand_at(o, have).p, o.p, (size_t)more * dtype_size(t));
    }
    b->ops->sync(b->q);
    return o;
}

dptr bench_ints(struct bench *b, const int32_t *x, int64_t n)
{
    struct operand o = bench_take(b, n, I32);

    b->ops->upload(b->q, o.p, x, (size_t)n * sizeof *x);
    b->ops->sync(b->q);
    return o.p;
}

void bench_fetch(struct bench *b, float *x, struct operand o, int64_t n)
{
    void *typed = mem_take((size_t)n * dtype_size(o.t));

    b->ops->download(b->q, typed, o.p, (size_t)n * dtype_size(o.t));
    b->ops->sync(b->q);
    dtype_convert(x, F32, typed, o.t, n);
    mem_give(typed);
}

/* ---- time ---- */

static double round_of(struct bench *b, bench_call *call, const void *with, int calls)
{
    double start = clock_now();

    for (int i = 0; i < calls; i++) {
        call(b, with);
    }
    b->ops->sync(b->q);
    return clock_now() - start;
}

/* Enough calls for a round of `seconds`; also warms up. */
static int calls_of(struct bench *b, bench_call *call, const void *with, double seconds)
{
    int calls = 1;

    b->ops->sync(b->q);
    round_of(b, call, with, 1);
    while (!b->tiny && calls < MOST_CALLS && round_of(b, call, with, calls) < seconds) {
        calls *= 2;
    }
    return calls;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_time(struct bench *b, bench_call *call, const void *with)
{
    int calls = calls_of(b, call, with, ROUND), rounds = b->tiny ? 3 : ROUNDS;
    double time[ROUNDS];

    for (int i = 0; i < rounds; i++) {
        time[i] = round_of(b, call, with, calls) / calls;
    }
    qsort(time, (size_t)rounds, sizeof *time, by_value);
    return time[rounds / 2];
}

double bench_time_once(struct bench *b, bench_call *call, const void *with)
{
    int calls = calls_of(b, call, with, SHORT_ROUND);

    return round_of(b, call, with, calls) / calls;
}

/* ---- rows ---- */

void bench_row(const struct bench *b, const char *item, double value, double goal,
               const char *goal_text, const char *fmt, ...)
{
    int judged = goal > 0 && !b->tiny;
    va_list ap;

    printf("%s\t", item);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\t%s\t%s\n", judged ? goal_text : "-",
           !judged         ? "measured"
           : value >= goal ? "passed"
                           : "failed");
    fflush(stdout);
}

void bench_skip(const char *item, const char *why)
{
    printf("%s\t%s\t-\tskipped\n", item, why);
    fflush(stdout);
}

double bench_difference(const float *a, const float *b, int64_t n)
{
    double off = 0, all = 0;

    for (int64_t i = 0; i < n; i++) {
        off += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        all += (double)b[i] * b[i];
    }
    return all > 0 ? sqrt(off / all) : off > 0 ? INFINITY : 0;
}

/* ---- main ---- */

static int say_device(struct bench *b)
{
    struct ops_device d;
    int n = 0;

    cuda_check(cudaGetDeviceCount(&n), "devices");
    b->ops->device(b->q, &d);
    printf("%s, %.0f GiB\n%d\n", d.text, (double)d.memory / (1 << 30), n);
    return 0;
}

static int write_ids(const char *path, int64_t count, uint64_t vocab)
{
    FILE *f = fopen(path, "wb");
    int wrong = !f || count < 1 || vocab < 1;

    for (int64_t i = 0; i < count && !wrong; i++) {
        uint32_t id = (uint32_t)(rng_u64(1, 0, (uint64_t)i) % vocab);
        wrong = fwrite(&id, sizeof id, 1, f) != 1;
    }
    if (f && fclose(f)) {
        wrong = 1;
    }
    if (wrong) {
        fprintf(stderr, "bench: cannot write %s\n", path);
    }
    return wrong ? E_FILE : 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench [--tiny] [--quick] [ops] [products] [attention]\n"
                    "       bench --device\n"
                    "       bench --ids FILE COUNT VOCAB\n");
    return E_INPUT;
}

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} parts[] = { { "ops", bench_rows },
              { "products", bench_products },
              { "attention", bench_attention } };

int main(int argc, char **argv)
{
    struct bench b = { .ops = &ops_cuda };
    struct err e = { "" };
    int wanted = 0, device = argc == 2 && !strcmp(argv[1], "--device");

    if (argc == 5 && !strcmp(argv[1], "--ids")) {
        return write_ids(argv[2], atoll(argv[3]), strtoull(argv[4], NULL, 10));
    }
    for (int i = 1; i < argc && !device; i++) {
        int known = 0;
        for (int k = 0; k < COUNT_OF(parts); k++) {
            if (!strcmp(argv[i], parts[k].name)) {
                wanted |= 1 << k;
                known = 1;
            }
        }
        b.tiny |= !strcmp(argv[i], "--tiny");
        b.quick |= !strcmp(argv[i], "--quick");
        if (!known && strcmp(argv[i], "--tiny") && strcmp(argv[i], "--quick")) {
            return usage();
        }
    }
    if (b.ops->probe(0, &e) != OK || b.ops->queue_create(&b.q, 1, 0, &e) != OK) {
        fprintf(stderr, "%s\n", e.text);
        return E_RESOURCE;
    }
    if (device) {
        return say_device(&b);
    }
    b.peak = b.ops->measure_peak(b.q, BF16, 0);
    for (int k = 0; k < COUNT_OF(parts); k++) {
        if (!wanted || (wanted >> k & 1)) {
            parts[k].run(&b);
        }
    }
    b.ops->queue_free(b.q);
    return 0;
}
