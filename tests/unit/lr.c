/* Learning rates against figures worked out by hand, for every schedule, its edges, and what a
 * longer run changes. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "optim/lr.h"

#include "../tap.h"

struct row {
    enum config_lr shape;
    int64_t steps, warmup, decay;
    double ratio;
    int64_t i;
    double want; /* of a peak of 1 */
};

static const struct row rows[] = {
    /* warm-up: i / W, the same for all */
    { LR_CONSTANT, 100, 4, 0, 0, 1, 0.25 },
    { LR_COSINE, 100, 4, 0, 0.1, 3, 0.75 },
    { LR_WSD, 100, 4, 0, 0.1, 4, 1 },
    { LR_INVERSE_SQRT, 100, 4, 0, 0.1, 4, 1 },
    { LR_CONSTANT, 100, 4, 0, 0, 5, 1 },
    { LR_CONSTANT, 100, 0, 0, 0, 1, 1 },
    { LR_CONSTANT, 100, 0, 0, 0, 100, 1 },
    /* linear: from W to E */
    { LR_LINEAR, 110, 10, 0, 0, 10, 1 },
    { LR_LINEAR, 110, 10, 0, 0, 60, 0.5 },
    { LR_LINEAR, 110, 10, 0, 0.2, 60, 0.6 },
    { LR_LINEAR, 110, 10, 0, 0.2, 110, 0.2 },
    { LR_LINEAR, 110, 10, 60, 0.2, 35, 0.6 },
    { LR_LINEAR, 110, 10, 60, 0.2, 61, 0.2 },
    { LR_LINEAR, 110, 10, 60, 0.2, 110, 0.2 },
    /* cosine: half way is the mean, a third of the way cos 60 degrees */
    { LR_COSINE, 110, 10, 0, 0.1, 60, 0.55 },
    { LR_COSINE, 100, 10, 0, 0, 40, 0.75 },
    { LR_COSINE, 100, 10, 0, 0.1, 40, 0.775 },
    { LR_COSINE, 100, 10, 0, 0.1, 100, 0.1 },
    { LR_COSINE, 100, 0, 50, 0.1, 90, 0.1 },
    { LR_COSINE, 1, 0, 0, 0.1, 1, 0.1 },
    /* wsd: the last d steps fall as 1 - sqrt */
    { LR_WSD, 100, 0, 0, 0, 90, 1 },
    { LR_WSD, 100, 0, 0, 0, 100, 0 },
    { LR_WSD, 100, 0, 16, 0, 84, 1 },
    { LR_WSD, 100, 0, 16, 0, 88, 0.5 },
    { LR_WSD, 100, 0, 16, 0.1, 88, 0.55 },
    { LR_WSD, 100, 0, 16, 0.1, 93, 0.325 },
    { LR_WSD, 100, 0, 16, 0.1, 100, 0.1 },
    /* inverse square root, down to its floor */
    { LR_INVERSE_SQRT, 1000, 4, 0, 0.1, 16, 0.5 },
    { LR_INVERSE_SQRT, 1000, 4, 0, 0.1, 100, 0.2 },
    { LR_INVERSE_SQRT, 1000, 4, 0, 0.1, 900, 0.1 },
    { LR_INVERSE_SQRT, 1000, 0, 0, 0, 1, 1 },
    { LR_INVERSE_SQRT, 1000, 0, 0, 0, 25, 0.2 },
};

static const char *const names[] = { "constant", "linear", "cosine", "wsd", "inverse-sqrt" };

static double at(struct config *c, const struct row *r, double peak)
{
    c->train.train_steps = r->steps;
    c->optim.lr_schedule = (int)r->shape;
    c->optim.warmup_steps = r->warmup;
    c->optim.decay_steps = r->decay;
    c->optim.min_lr_ratio = r->ratio;
    c->optim.learning_rate = peak;
    return lr_at(c, r->i);
}

/* After the warm-up a rate never rises. */
static int falls(struct config *c, struct row r)
{
    double last = INFINITY;

    for (r.i = r.warmup > 0 ? r.warmup : 1; r.i <= r.steps; r.i++) {
        double now = at(c, &r, 3e-4);
        if (now > last)
            return 0;
        last = now;
    }
    return 1;
}

int main(void)
{
    struct config *c = mem_take(sizeof *c);

    tap_plan(COUNT_OF(rows) * 2);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        double rate = at(c, r, 1), scaled = at(c, r, 6e-4);
        tap_ok(fabs(rate - r->want) < 1e-14 && fabs(scaled - 6e-4 * r->want) < 1e-17,
               "%s, step %d of %d: %.6g", names[r->shape], (int)r->i, (int)r->steps, rate);
        tap_ok(falls(c, *r), "%s of %d steps never rises after the warm-up", names[r->shape],
               (int)r->steps);
    }
    mem_give(c);
    return tap_done();
}
