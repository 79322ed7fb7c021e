#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    double limit; /* of |difference| / largest |value| of the buffer, in F32 */
    double inner; /* with narrower types as well: roundings inside, in units of the type at 1 */
} tolerances[TOLERANCE_N] = {
    [EXACT] = { "exact", 0, 0 },                /* copies, or one rounding in both            */
    [ELEMENT] = { "element", 6e-7, 0 },         /* some ten roundings of F32, exp within 2 ulp */
    [SUM] = { "sum", 2e-6, 0 },                 /* F32 sums of up to 515 terms in any order    */
    [EXPONENTIAL] = { "exponential", 4e-6, 0 }, /* exp of such a sum, up to 10: relative there */
    /* weights and gradients of scores are rounded to the type, half a unit, before they enter a
     * product, whose terms can cancel to half the largest value */
    [WEIGHTED] = { "weighted", 4e-6, 1 },
};
static const double poisons[] = { NAN, INFINITY, -INFINITY };
enum { POISON_T = 100, SMALL_T = 32, SMALL_POISONS = 1 }; /* more tokens add time, not paths */

struct trial { /* one row and shape */
    const struct trial_run *run;
    const struct op_row *row;
    const struct shape *shape;
    struct queue *q, *ref_q;
    char fault[160];
};

/* Distance of neighbours at x; 0 for F32 and F64, whose last rounding is part of the limits. */
static double unit_at(enum dtype t, double x)
{
    int digits = t == BF16 ? 8 : 11, exponent;
    if (t != BF16 && t != F16) {
        return 0;
    }
    frexp(x, &exponent);
    return ldexp(1, (t == F16 && exponent < -13 ? -13 : exponent) - digits);
}

/* 0: equal enough. Values that are not finite must be the same: both NaN or the same infinity.
 * Where the reference rounds to a narrow type, a value near a tie may become its neighbour. */
static double difference(const struct buffer *b, const char *want, const char *got, int exact)
{
    double worst = 0, top = 0;
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        double x = scene_value(b, want, i / b->cols, i % b->cols),
               y = scene_value(b, got, i / b->cols, i % b->cols);
        if (isfinite(x) && isfinite(y)) {
            double unit = exact ? 0 : unit_at(b->t, fmax(fabs(x), fabs(y)));
            worst = fmax(worst, fabs(x - y) - unit);
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
    enum tolerance kind = t->row->tolerance;
    double limit = tolerances[kind].limit + tolerances[kind].inner * unit_at(s->real, 0.99);
    for (int i = 0; i < s->n; i++) {
        double d = is_float_output(&s->buffer[i])
                       ? difference(&s->buffer[i], want[i], s->buffer[i].base, kind == EXACT)
                       : 0;
        if (!(d <= limit)) {
            snprintf(t->fault, sizeof t->fault,
                     "buffer %d differs from the reference by %.2e (limit '%s', %.1e)", i, d,
                     tolerances[kind].name, limit);
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
    scene_call(s, t->row->call, t->run->ops, t->q);
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
    scene_call(s, t->row->call, t->run->ops, t->q);
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

static void poison_inputs(struct trial *t, struct scene *s)
{
    int n = t->run->small ? SMALL_POISONS : COUNT_OF(poisons);
    for (int i = 0; i < s->n; i++) {
        const struct buffer *b = &s->buffer[i];
        int is_input = dtype_is_float(b->t) && (b->use == USE_IN || b->use == USE_INOUT);
        for (int k = 0; is_input && k < n; k++) {
            compare_poisoned(t, s, i, poisons[k]);
        }
    }
}

static void run_trial(struct trial *t)
{
    struct scene s;
    char *want[SCENE_BUFFERS];
    scene_make(&s, t->row->call, t->run->ops, t->shape, t->run->t, t->run->threads);
    scene_call(&s, t->row->call, &ops_ref, t->ref_q);
    snapshot(&s, want);
    if (scene_damage(&s) >= 0) {
        snprintf(t->fault, sizeof t->fault, "the reference wrote outside buffer %d",
                 scene_damage(&s));
    }
    int64_t requests = mem_requests();
    scene_call(&s, t->row->call, t->run->ops, t->q);
    if (mem_requests() != requests) {
        snprintf(t->fault, sizeof t->fault, "asked for memory");
    }
    compare(t, &s, want);
    compare_repeat(t, &s);
    if (t->run->threads == 1 && t->shape->T <= POISON_T) {
        poison_inputs(t, &s);
    }
    give_snapshot(&s, want);
    scene_free(&s);
}

void trial_rows(const struct trial_run *run)
{
    struct trial t = { .run = run };
    if (run->ops->queue_create(&t.q, run->threads, 0, NULL) != OK ||
        ops_ref.queue_create(&t.ref_q, run->threads, 0, NULL) != OK) {
        die(E_BUG, "no queue");
    }
    for (int i = 0; i < op_nrows; i++) {
        int failed = 0, tried = 0;
        t.row = &op_rows[i];
        for (int k = 0; k < t.row->nshapes; k++) {
            t.shape = &t.row->shapes[k];
            if (run->small && t.shape->T > SMALL_T) {
                continue;
            }
            t.fault[0] = 0;
            run_trial(&t);
            tried++;
            if (t.fault[0]) {
                printf("# %s, shape %d: %s\n", t.row->name, k, t.fault);
                failed++;
            }
        }
        run->report(failed == 0, "%s, %s, %s, %d thread%s: reference and %s agree on %d shapes",
                    t.row->name, dtype_name(run->t), run->variant, run->threads,
                    run->threads > 1 ? "s" : "", run->ops->name, tried);
    }
    run->ops->queue_free(t.q);
    ops_ref.queue_free(t.ref_q);
}
