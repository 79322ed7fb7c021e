#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"

void console_head(void)
{
    say("%8s %9s %9s %9s %11s %10s %6s %7s %9s", "step", "loss", "|grad|", "lr", "tokens/s",
        "GFLOP/s", "peak", "bubble", "left");
}

/* 12345.6 -> "12,345.6" */
static const char *with_separators(char *buf, size_t size, double x)
{
    char whole[32];

    log_thousands(whole, (int64_t)x);
    snprintf(buf, size, x < 1000 ? "%s.%d" : "%s", whole, (int)(x * 10) % 10);
    return buf;
}

/* "   validation loss 5.6312, books 5.5012", as many as there is room for */
static void put_validation(char *text, size_t room, const struct step_report *r)
{
    size_t n = 0;

    text[0] = 0;
    for (int i = 0; i < r->nvalidations && n + 100 < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s %.4f", i ? ", " : "",
                              i ? r->validation[i].said : "   validation loss",
                              r->validation[i].loss);
}

void console_step(const struct step_report *r)
{
    char tokens[32], flops[48], left[32], norm[32], validation[256];

    log_thousands(tokens, (int64_t)r->tokens_per_second);
    with_separators(flops, sizeof flops, r->flops_per_second / 1e9);
    log_duration(left, r->left);
    put_validation(validation, sizeof validation, r);
    snprintf(norm, sizeof norm, isfinite(r->grad_norm) ? "%.3f" : "-", r->grad_norm);
    say("%8" PRId64 " %9.4f %9s %9.2e %11s %10s %4.0f %% %5.1f %% %9s%s%s", r->step, r->loss, norm,
        r->learning_rate, tokens, flops, 100 * r->peak_fraction, 100 * r->bubble, left, validation,
        r->skipped ? "   skipped" : "");
}

void console_live(const struct step_report *r)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1], left[32];
    int full = (int)(WIDTH * (double)r->step / (double)r->last_step);

    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = 0;
    say_live("[%s] step %" PRId64 " of %" PRId64 ", %s left", bar, r->step, r->last_step,
             log_duration(left, r->left));
}
