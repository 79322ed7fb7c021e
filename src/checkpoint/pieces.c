#include "checkpoint/pieces.h"

#include "checkpoint/checkpoint.h"

struct operand piece_operand(const struct piece *p, int kind)
{
    const struct operand all[CHECKPOINT_KINDS] = { p->master, p->exp_avg, p->exp_avg_sq };

    return all[kind];
}
