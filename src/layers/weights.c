#include "layers/layer.h"

/* First element of a parameter in its bucket's flat order. Fused rows follow each other, so the
 * first row's view is the whole matrix. NONE if the model lacks it. */
static struct operand view(const struct env *e, const struct operand *from, enum param_id id,
                           int layer)
{
    const struct param *p = params_find(e->ps, id, layer);
    return p ? operand_at(from[p->bucket], p->at) : OPERAND_NONE;
}

static struct block_weights block_views(const struct env *e, const struct operand *from, int layer)
{
    return (struct block_weights){
        .norm1 = view(e, from, P_NORM1, layer),
        .wqkv = view(e, from, P_WQ, layer),
        .bqkv = view(e, from, P_BQ, layer),
        .qnorm = view(e, from, P_QNORM, layer),
        .knorm = view(e, from, P_KNORM, layer),
        .wo = view(e, from, P_WO, layer),
        .bo = view(e, from, P_BO, layer),
        .bgu = view(e, from, P_BGATE, layer),
        .bdown = view(e, from, P_BDOWN, layer),
        .norm2 = view(e, from, P_NORM2, layer),
        .wgu = view(e, from, P_WGATE, layer),
        .wdown = view(e, from, P_WDOWN, layer),
    };
}

struct block_weights weights_acquire(struct env *e, int layer)
{
    return block_views(e, e->weights, layer);
}

void weights_release(struct env *e, int layer)
{
    (void)e;
    (void)layer;
}

struct block_weights weights_grads(struct env *e, int layer)
{
    return block_views(e, e->grads, layer);
}

struct head_weights weights_head(struct env *e, const struct operand *from)
{
    const struct param *p = params_find(e->ps, P_HEAD, -1);

    for (int i = 0; !p && i < e->ps->n; i++) /* tied: the copy at the last stage */
        if (e->ps->b[e->ps->p[i].bucket].tied == 2)
            p = &e->ps->p[i];
    return (struct head_weights){ .norm = view(e, from, P_FINALNORM, -1),
                                  .head = operand_at(from[p->bucket], p->at),
                                  .first = e->g->tp_rank * e->d.Vl,
                                  .rows = e->d.Vl,
                                  .real = p->box.ext[0] };
}

struct embed_weights weights_embed(struct env *e, const struct operand *from)
{
    return (struct embed_weights){ .w = view(e, from, P_EMBED, -1),
                                   .first = e->g->tp_rank * e->d.Vl,
                                   .rows = e->d.Vl };
}
