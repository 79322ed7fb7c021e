#include "optim/loss_scale.h"

#include <math.h>

static const double largest = 0x1p60; /* far above what any float16 gradient can take */

void loss_scale_start(struct loss_scale *s, const struct loss_scale_rule *r)
{
    *s = (struct loss_scale){ .scale = r->init, .tolerance = r->hysteresis - 1 };
}

int loss_scale_next(struct loss_scale *s, const struct loss_scale_rule *r, int overflow)
{
    if (!overflow) {
        if (++s->good >= r->growth_interval)
            *s = (struct loss_scale){ .scale = fmin(2 * s->scale, largest),
                                      .tolerance = r->hysteresis - 1 };
        return 1;
    }
    s->good = 0;
    if (s->tolerance > 0) {
        s->tolerance--;
        return 1;
    }
    if (s->scale <= 1)
        return 0;
    s->scale = fmax(1, s->scale * r->backoff);
    return 1;
}
