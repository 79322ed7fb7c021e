#include "checkpoint/checkpoint.h"
#include "store/h5.h"

#define SCALAR(name, member, is_real, optional)                              \
    {                                                                        \
        name, offsetof(struct checkpoint_scalars, member), is_real, optional \
    }
const struct checkpoint_scalar checkpoint_scalars[CHECKPOINT_SCALARS] = {
    SCALAR("step", step, 0, 0),
    SCALAR("samples", samples, 0, 0),
    SCALAR("tokens", tokens, 0, 0),
    SCALAR("adam_t", adam_t, 0, 0),
    SCALAR("attempt", attempt, 0, 0),
    SCALAR("loss_scale", loss.scale, 1, 1),
    SCALAR("loss_scale_good_steps", loss.good, 0, 1),
    SCALAR("loss_scale_tolerance", loss.tolerance, 0, 1),
};

enum status checkpoint_scalars_write(struct h5 *f, const struct checkpoint_scalars *s,
                                     struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < CHECKPOINT_SCALARS && st == OK; i++) {
        const struct checkpoint_scalar *row = &checkpoint_scalars[i];
        const void *value = (const char *)s + row->at;
        st = row->is_real ? h5_set_f64(f, "/", row->name, *(const double *)value, e)
                          : h5_set_i64(f, "/", row->name, value, 1, e);
    }
    return st;
}
