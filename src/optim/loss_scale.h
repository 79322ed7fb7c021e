/* Dynamic loss scale of float16 (Micikevicius et al. 2018): the loss is multiplied before the
 * backward pass, so that small gradients do not vanish, and the gradient divided again in the
 * update. */
#ifndef OPTIM_LOSS_SCALE_H
#define OPTIM_LOSS_SCALE_H
#include "base/types.h"

struct loss_scale {
    double scale;      /* 1 where nothing is scaled                            */
    int64_t good;      /* steps without overflow since the scale last changed  */
    int64_t tolerance; /* overflows that still leave the scale as it is        */
};
struct loss_scale_rule {
    double init, backoff;    /* first value; factor after an overflow, in (0, 1) */
    int64_t growth_interval; /* that many good steps in a row double the scale   */
    int64_t hysteresis;      /* from this overflow since it last grew on it falls */
};

void loss_scale_start(struct loss_scale *s, const struct loss_scale_rule *r) LOCAL;
/* After a step; overflow: its gradient was not finite. 0: there was an overflow and the scale is 1
 * already, so that lowering it cannot help. */
int loss_scale_next(struct loss_scale *s, const struct loss_scale_rule *r, int overflow) LOCAL;
#endif
