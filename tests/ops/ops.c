/* Every slot of ops.h: the reference against the CPU backend and each of its instruction sets,
 * guarded buffers, repeated calls, values that are not numbers; gradients against central
 * differences in float64 on the reference. */
#include <math.h>

#include "../tap.h"
#include "cases.h"
#include "checks.h"

static const struct {
    const char *name;
    double limit; /* of |difference| / largest |value| of the buffer */
} tolerances[TOLERANCE_N] = {
    [EXACT] = { "exact", 0 },                /* copies, or one rounding in both               */
    [ELEMENT] = { "element", 6e-7 },         /* some ten roundings of F32, exp within 2 ulp   */
    [SUM] = { "sum", 2e-6 },                 /* F32 sums of up to 515 terms in any order      */
    [EXPONENTIAL] = { "exponential", 4e-6 }, /* exp of such a sum: up to 10, so relative there */
};

/* 0: equal enough. Values that are not finite must be the same: both NaN or the same infinity. */
static double difference(const struct buffer *b, const char *want, const char *got)
{
    double worst = 0, top = 0;
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        double x = scene_value(b, want, i / b->cols, i % b->cols),
               y = scene_value(b, got, i / b->cols, i % b->cols);
        if (isfinite(x) && isfinite(y)) {
            worst = fmax(worst, fabs(x - y));
            top = fmax(top, fabs(x));
        } else if (!(isnan(x) && isnan(y)) && x != y) {
            return INFINITY;
        }
    }
    return worst == 0 ? 0 : worst / top;
}

static int is_float_output(const struct buffer *b)
{
    return dtype_is_float(b->t) && (b->use == USE_OUT || b->use == USE_INOUT);
}

enum { POISON_T = 100 }; /* more tokens add time, not paths */

struct trial { /* one row and shape with one backend */
    const struct op_row *row;
    const struct shape *shape;
    const struct ops *ops;
    struct queue *q, *ref_q;
    int threads;
    char fault[160];
};

static void snapshot(const struct scene *s, char *copies[SCENE_BUFFERS])
{
    for (int i = 0; i < s->n; i++) {
        copies[i] = mem_take(s->buffer[i].bytes);
        memcpy(copies[i], s->buffer[i].base, s->buffer[i].bytes);
    }
}

static void give_snapshot(const struct scene *s, char *copies[SCENE_BUFFERS])
{
    for (int i = 0; i < s->n; i++) {
        mem_give(copies[i]);
    }
}

static void compare(struct trial *t, const struct scene *s, char *const want[SCENE_BUFFERS])
{
    for (int i = 0; i < s->n; i++) {
        double d = is_float_output(&s->buffer[i])
                       ? difference(&s->buffer[i], want[i], s->buffer[i].base)
                       : 0;
        if (!(d <= tolerances[t->row->tolerance].limit)) {
            snprintf(t->fault, sizeof t->fault,
                     "buffer %d differs from the reference by %.2e (limit '%s', %.1e)", i, d,
                     tolerances[t->row->tolerance].name, tolerances[t->row->tolerance].limit);
        }
    }
    int damaged = scene_damage(s);
    if (damaged >= 0) {
        snprintf(t->fault, sizeof t->fault, "wrote outside buffer %d", damaged);
    }
}

static void compare_repeat(struct trial *t, struct scene *s)
{
    char *once[SCENE_BUFFERS];
    snapshot(s, once);
    scene_call(s, t->row->call, t->ops, t->q);
    for (int i = 0; i < s->n; i++) {
        if (s->buffer[i].use != USE_SCRATCH &&
            memcmp(once[i], s->buffer[i].base, s->buffer[i].bytes)) {
            snprintf(t->fault, sizeof t->fault, "buffer %d differs when the call is repeated", i);
        }
    }
    give_snapshot(s, once);
}

/* Wherever the reference has a value that is not finite, the backend must have one. */
static void compare_poisoned(struct trial *t, struct scene *s, int input, double poison)
{
    char *want[SCENE_BUFFERS];
    struct buffer *in = &s->buffer[input];
    int64_t row = in->rows / 2, col = in->cols / 2;
    double before = scene_value(in, in->first, row, col);
    scene_poke(in, in->first, row, col, poison);
    scene_call(s, t->row->call, &ops_ref, t->ref_q);
    snapshot(s, want);
    scene_call(s, t->row->call, t->ops, t->q);
    for (int i = 0; i < s->n; i++) {
        const struct buffer *b = &s->buffer[i];
        for (int64_t j = 0; is_float_output(b) && j < b->rows * b->cols; j++) {
            double x = scene_value(b, want[i], j / b->cols, j % b->cols),
                   y = scene_value(b, b->base, j / b->cols, j % b->cols);
            if (!isfinite(x) && isfinite(y)) {
                snprintf(t->fault, sizeof t->fault,
                         "%g in buffer %d: output %d, element %lld should be %g, is %g", poison,
                         input, i, (long long)j, x, y);
            }
        }
    }
    give_snapshot(s, want);
    scene_poke(in, in->first, row, col, before);
}

static void run_trial(struct trial *t)
{
    static const double poisons[] = { NAN, INFINITY, -INFINITY };
    struct scene s;
    char *want[SCENE_BUFFERS];
    scene_make(&s, t->row->call, t->ops, t->shape, F32, t->threads);
    scene_call(&s, t->row->call, &ops_ref, t->ref_q);
    snapshot(&s, want);
    if (scene_damage(&s) >= 0) {
        snprintf(t->fault, sizeof t->fault, "the reference wrote outside buffer %d",
                 scene_damage(&s));
    }
    int64_t requests = mem_requests();
    scene_call(&s, t->row->call, t->ops, t->q);
    if (mem_requests() != requests) {
        snprintf(t->fault, sizeof t->fault, "asked for memory");
    }
    compare(t, &s, want);
    compare_repeat(t, &s);
    for (int i = 0; i < s.n && t->threads == 1 && t->shape->T <= POISON_T; i++) {
        const struct buffer *b = &s.buffer[i];
        for (int k = 0; dtype_is_float(b->t) && (b->use == USE_IN || b->use == USE_INOUT) &&
                        k < COUNT_OF(poisons);
             k++) {
            compare_poisoned(t, &s, i, poisons[k]);
        }
    }
    give_snapshot(&s, want);
    scene_free(&s);
}

static void test_rows(const struct ops *ops, const char *isa, int threads)
{
    struct queue *q, *ref_q;
    if (ops->queue_create(&q, threads, 0, NULL) != OK ||
        ops_ref.queue_create(&ref_q, threads, 0, NULL) != OK) {
        die(E_BUG, "no queue");
    }
    for (int i = 0; i < op_nrows; i++) {
        struct trial t = {
            .row = &op_rows[i], .ops = ops, .q = q, .ref_q = ref_q, .threads = threads
        };
        int failed = 0;
        for (int k = 0; k < op_rows[i].nshapes; k++) {
            t.shape = &op_rows[i].shapes[k];
            t.fault[0] = 0;
            run_trial(&t);
            if (t.fault[0]) {
                printf("# %s, shape %d: %s\n", op_rows[i].name, k, t.fault);
                failed++;
            }
        }
        tap_ok(failed == 0, "%s, %s, %d thread%s: reference and %s agree on %d shapes",
               op_rows[i].name, isa, threads, threads > 1 ? "s" : "", ops->name,
               op_rows[i].nshapes);
    }
    ops->queue_free(q);
    ops_ref.queue_free(ref_q);
}

void checks_report(int holds, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tap_ok(holds, "%s", text);
}

static const struct {
    const char *isa;
    int threads;
} variants[] = { { "auto", 1 }, { "auto", 2 }, { "avx512", 1 }, { "avx2", 1 }, { "baseline", 1 } };

int main(void)
{
    tap_plan(COUNT_OF(variants) * (op_nrows + 1) + gradient_nrows + CHECKS);
    for (int i = 0; i < COUNT_OF(variants); i++) {
        const struct ops *ops;
        enum status st = ops_choose(&ops, "cpu", variants[i].isa, F32, NULL);
        if (st == OK) {
            test_rows(ops, variants[i].isa, variants[i].threads);
            check_exp(ops, variants[i].isa);
        } else if (st == E_RESOURCE) {
            tap_skip(op_nrows + 1, "this machine has no %s", variants[i].isa);
        }
    }
    check_gradients();
    check_others();
    return tap_done();
}
