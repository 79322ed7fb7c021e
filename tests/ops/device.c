/* Every slot of ops.h on a device: the reference against the CUDA backend in each of its types, and
 * what its host side promises. With the emulation (tests/cuemu) or on a GPU.
 *   device [--small] [TYPE...]     types: float32, bfloat16, float16 [all] */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "trial.h"

enum { CHECKS = 6, PAST_RING = 20 << 20 };
static const enum dtype all_types[] = { F32, BF16, F16 };

static void report(int holds, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tap_ok(holds, "%s", text);
}

static void fill(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
    }
}

/* More than all staging memory, changed as soon as upload returns, then in odd pieces. */
static void check_upload(struct queue *q)
{
    size_t n = PAST_RING;
    unsigned char *src = mem_take(n), *want = mem_take(n), *got = mem_take(n);
    dptr d = { ops_cuda.memory->take(n) };
    BUG_IF(!d.p);
    fill(src, n, 1);
    ops_cuda.upload(q, d, src, n);
    memset(src, 0xee, n);
    fill(want, n, 1);
    for (size_t at = 0, size = 1; at + size < n; at += size, size = size * 3 % 100003 + 1) {
        fill(src, size, (unsigned)size);
        memcpy(want + at, src, size);
        ops_cuda.upload(q, dptr_at(d, (int64_t)at), src, size);
        memset(src, 0xee, size);
    }
    ops_cuda.download(q, got, d, n);
    ops_cuda.sync(q);
    report(!memcmp(got, want, n), "upload: the source may be reused at once");
    ops_cuda.memory->give(d.p, n);
    mem_give(src);
    mem_give(want);
    mem_give(got);
}

static void check_memory(struct queue *q)
{
    enum { N = 1 << 20 };
    struct ops_device before, after;
    unsigned char *got = mem_take(N), sum = 0;
    ops_cuda.device(q, &before);
    dptr d = { ops_cuda.memory->take(N) };
    ops_cuda.device(q, &after);
    BUG_IF(!d.p);
    ops_cuda.download(q, got, d, N);
    ops_cuda.sync(q);
    for (int i = 0; i < N; i++) {
        sum |= got[i];
    }
    report(sum == 0 && (uintptr_t)d.p % 256 == 0, "memory is zeroed and aligned");
    report(after.memory_free <= before.memory_free - N && before.memory >= before.memory_free,
           "free memory is told (%s)", before.text);
    report(!ops_cuda.memory->take((size_t)before.memory * 2), "too much memory gives NULL");
    ops_cuda.memory->give(d.p, N);
    mem_give(got);
}

/* Sums of nothing: y = 0, y += 0, and no tokens at all. */
static void check_empty(struct queue *q)
{
    enum { T = 3, N = 5 };
    float y[T * (N + 1)], z[T * (N + 1)];
    struct operand d = { { ops_cuda.memory->take(sizeof y) }, F32 };
    for (int i = 0; i < COUNT_OF(y); i++) {
        y[i] = z[i] = (float)i + 1;
    }
    ops_cuda.upload(q, d.p, y, sizeof y);
    ops_cuda.linear(q, d, N + 1, d, 1, d, 0, N, 4, 0);
    ops_cuda.linear(q, d, N + 1, d, 1, d, T, N, 0, 1);
    ops_cuda.linear_grad_weight(q, d, d, N, d, N, 0, T, N);
    ops_cuda.download(q, z, d.p, sizeof z);
    ops_cuda.sync(q);
    int same = !memcmp(y, z, sizeof y);
    ops_cuda.linear(q, d, N + 1, d, 1, d, T, N, 0, 0);
    ops_cuda.download(q, z, d.p, sizeof z);
    ops_cuda.sync(q);
    for (int i = 0; i < COUNT_OF(z); i++) {
        same &= z[i] == (i % (N + 1) < N ? 0 : y[i]);
    }
    report(same, "products over nothing");
    ops_cuda.memory->give(d.p.p, sizeof y);
}

static void check_peak(struct queue *q)
{
    double narrow = ops_cuda.measure_peak(q, BF16, 0), wide = ops_cuda.measure_peak(q, F32, 0);
    report(narrow > wide && wide > 1e12, "nominal peaks: %.3g and %.3g FLOP/s", narrow, wide);
}

int main(int argc, char **argv)
{
    const char *order = getenv("CUEMU_ORDER"), *streams = getenv("CUEMU_STREAMS");
    struct err e = { "" };
    struct queue *q;
    enum dtype types[COUNT_OF(all_types)];
    int n = 0, small = 0;
    char variant[64];
    for (int i = 1; i < argc; i++) {
        small |= !strcmp(argv[i], "--small");
        for (int k = 0; k < COUNT_OF(all_types); k++) {
            if (!strcmp(argv[i], dtype_name(all_types[k])) && n < COUNT_OF(types)) {
                types[n++] = all_types[k];
            }
        }
    }
    if (n == 0) {
        memcpy(types, all_types, sizeof types);
        n = COUNT_OF(types);
    }
    if (ops_cuda.queue_create(&q, 1, 0, &e) != OK) {
        return tap_skip_all(e.text);
    }
    snprintf(variant, sizeof variant, "order %s, streams %s", order ? order : "-",
             streams ? streams : "-");
    tap_plan(n * op_nrows + CHECKS);
    for (int i = 0; i < n; i++) {
        trial_rows(&(struct trial_run){ .ops = &ops_cuda,
                                        .variant = variant,
                                        .t = types[i],
                                        .threads = 1,
                                        .small = small,
                                        .report = report });
    }
    check_upload(q);
    check_memory(q);
    check_empty(q);
    check_peak(q);
    ops_cuda.queue_free(q);
    return tap_done();
}
