#include "layers/stage.h"

void stage_acts_place(struct stage_acts *a, struct arena *step, const struct env *e, int layers)
{
    for (int i = 0; i <= layers; i++)
        a->x[i] = operand_take(step, e->Ts * e->d.D, e->t);
    for (int i = 0; i < layers; i++) {
        block_acts_place(&a->block[i], step, e);
        a->block[i].x = a->x[i];
    }
}

void stage_stash_place(struct stage_stash *s, struct arena *step, const struct env *e, int layers)
{
    for (int i = 0; i < layers; i++)
        block_stash_place(&s->block[i], step, e);
}

void stage_forward(struct env *e, const struct stage *st, struct stage_acts *a, struct operand g,
                   dptr loss, double scale, const struct micro_batch *mb)
{
    if (st->embedding)
        embedding_forward(e, a->x[0], mb);
    for (int i = 0; i < st->layers; i++)
        block_forward(e, st->first_layer + i, &a->block[i], a->x[i + 1], mb);
    if (st->head)
        head_forward(e, a->x[st->layers], g, loss, scale, mb);
}

void stage_backward(struct env *e, const struct stage *st, struct stage_acts *a,
                    struct stage_stash *s, struct operand g, int weights,
                    const struct micro_batch *mb)
{
    for (int i = st->layers - 1; i >= 0; i--) {
        struct block_stash *stash = &s->block[weights ? 0 : i];
        block_grad_input(e, st->first_layer + i, &a->block[i], stash, g, mb);
        if (weights)
            block_grad_weight(e, st->first_layer + i, &a->block[i], stash);
    }
    if (st->embedding)
        embedding_grad(e, g, mb);
}

void stage_grad_weight(struct env *e, const struct stage *st, struct stage_acts *a,
                       struct stage_stash *s)
{
    for (int i = st->layers - 1; i >= 0; i--)
        block_grad_weight(e, st->first_layer + i, &a->block[i], &s->block[i]);
}
