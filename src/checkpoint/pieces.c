#include "checkpoint/pieces.h"

#include "checkpoint/checkpoint.h"

int64_t piece_real(const struct piece *p)
{
    int64_t real = box_count(&p->p->box);

    /* padding is whole rows at the end, so the real part is the head of the local elements */
    for (int d = 1; d < p->p->nd && real; d++)
        BUG_IF(p->p->box.ext[d] != p->p->local[d]);
    return max_i64(0, min_i64(p->count, real - p->first));
}

int piece_boxes(const struct piece *p, int64_t at, int64_t n, struct box out[BOX_RUN_MAX])
{
    return n > 0 ? box_of_run(&p->p->box, p->first + at, n, out) : 0;
}

struct operand piece_operand(const struct piece *p, int kind)
{
    const struct operand all[CHECKPOINT_KINDS] = { p->master, p->exp_avg, p->exp_avg_sq };

    return all[kind];
}
