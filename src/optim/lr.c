#include "optim/lr.h"

#include <math.h>

struct lr {
    double i, W, p, r, N, E, d;
}; /* update, warm-up, peak, min ratio, steps, end of decay, wsd's last part */
typedef double lr_shape(const struct lr *s);

static double progress(const struct lr *s)
{
    return fmin(1, (s->i - s->W) / fmax(1, s->E - s->W));
}

static double lr_constant(const struct lr *s)
{
    return s->p;
}

static double lr_linear(const struct lr *s)
{
    return s->p * (s->r + (1 - s->r) * (1 - progress(s)));
}

static double lr_cosine(const struct lr *s)
{
    return s->p * (s->r + (1 - s->r) * (1 + cos(acos(-1.0) * progress(s))) / 2);
}

/* Warm-up, stable, decay with 1 - sqrt (Haegele et al. 2024) */
static double lr_wsd(const struct lr *s)
{
    double into = s->i - s->N + s->d;
    return into <= 0 ? s->p : s->p * (s->r + (1 - s->r) * (1 - sqrt(into / s->d)));
}

static double lr_inverse_sqrt(const struct lr *s)
{
    return fmax(s->r * s->p, s->p * sqrt(fmax(1, s->W) / s->i));
}

double lr_at(const struct config *c, int64_t i)
{
    static lr_shape *const shape[] = { [LR_CONSTANT] = lr_constant,
                                       [LR_LINEAR] = lr_linear,
                                       [LR_COSINE] = lr_cosine,
                                       [LR_WSD] = lr_wsd,
                                       [LR_INVERSE_SQRT] = lr_inverse_sqrt };
    int64_t steps = c->train.train_steps, decay = c->optim.decay_steps;
    struct lr s = { .i = (double)i,
                    .W = (double)c->optim.warmup_steps,
                    .p = c->optim.learning_rate,
                    .r = c->optim.min_lr_ratio,
                    .N = (double)steps,
                    .E = (double)(decay ? decay : steps),
                    .d = (double)(decay ? decay : steps / 10) };

    return s.i <= s.W ? s.p * s.i / s.W : shape[c->optim.lr_schedule](&s);
}
