#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status metrics_open(struct metrics *m, const char *path, struct err *e)
{
    char last = '\n';
    int64_t size;
    enum status st = file_open(&m->f, path, FILE_APPEND, e);

    if (st != OK)
        return st;
    size = file_size(&m->f);
    if (size > 0) {
        struct file in;
        if ((st = file_open(&in, path, FILE_READ, e)) == OK) {
            st = file_read_at(&in, &last, 1, size - 1, e);
            file_close(&in, NULL);
        }
    }
    if (st == OK && last != '\n')
        st = file_append(&m->f, "\n", 1, e);
    return st;
}

struct line {
    char text[8192];
    int n;
};

static void put(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct line *l, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    l->n += vsnprintf(l->text + l->n, sizeof l->text - (size_t)l->n, fmt, args);
    va_end(args);
    BUG_IF(l->n >= (int)sizeof l->text);
}

/* JSON has no NaN and no infinity. */
static void put_real(struct line *l, const char *key, double x)
{
    if (isfinite(x))
        put(l, ", \"%s\": %.17g", key, x);
    else
        put(l, ", \"%s\": null", key);
}

enum status metrics_write(struct metrics *m, const struct step_report *r, struct err *e)
{
    struct line l = { .n = 0 };

    put(&l, "{\"step\": %" PRId64, r->step);
    put_real(&l, "loss", r->loss);
    put_real(&l, "grad_norm", r->grad_norm);
    put_real(&l, "learning_rate", r->learning_rate);
    put(&l, ", \"valid_tokens\": %" PRId64 ", \"tokens\": %" PRId64 ", \"samples\": %" PRId64,
        r->valid_tokens, r->tokens, r->samples);
    put_real(&l, "step_seconds", r->seconds);
    put_real(&l, "tokens_per_second", r->tokens_per_second);
    put_real(&l, "model_flops_per_second", r->flops_per_second);
    put_real(&l, "peak_fraction", r->peak_fraction);
    put_real(&l, "bubble", r->bubble);
    put_real(&l, "data_seconds", r->data_seconds);
    for (int i = 0; i < r->nvalidations; i++)
        put_real(&l, r->validation[i].key, r->validation[i].loss);
    if (!isnan(r->loss_scale))
        put_real(&l, "loss_scale", r->loss_scale);
    if (r->skipped)
        put(&l, ", \"skipped\": true");
    put(&l, ", \"attempt\": %" PRId64 "}\n", r->attempt);
    return file_append(&m->f, l.text, (size_t)l.n, e);
}

enum status metrics_close(struct metrics *m, struct err *e)
{
    return file_close(&m->f, e);
}
