/* A chunk of layers on this rank: perhaps the embedding, some blocks, perhaps the head. */
#ifndef LAYERS_STAGE_H
#define LAYERS_STAGE_H
#include "layers/block.h"
#include "layers/ends.h"

struct stage {
    int first_layer, layers, embedding, head;
};

struct stage_acts { /* one activation slot; big enough for any chunk of the rank */
    struct operand
        *x; /* [layers + 1]: input, then each block's output; x[layers] is the chunk's output */
    struct block_acts *block; /* [layers]      */
};
struct stage_stash {
    struct block_stash *block;
}; /* [layers], or one that all layers share (whole backward) */

void stage_acts_place(struct stage_acts *a, struct arena *step, const struct env *e,
                      int layers) LOCAL;
void stage_stash_place(struct stage_stash *s, struct arena *step, const struct env *e,
                       int layers) LOCAL;
/* g: NONE for evaluation; on the last stage receives d(output of the blocks). */
void stage_forward(struct env *e, const struct stage *st, struct stage_acts *a, struct operand g,
                   dptr loss, double scale, const struct micro_batch *mb) COLL(tp);
/* g: d(output) in, d(input) out. weights: also the weight half, layer by layer, with one shared
 * stash. */
void stage_backward(struct env *e, const struct stage *st, struct stage_acts *a,
                    struct stage_stash *s, struct operand g, int weights,
                    const struct micro_batch *mb) COLL(tp);
void stage_grad_weight(struct env *e, const struct stage *st, struct stage_acts *a,
                       struct stage_stash *s) COLL(tp);
#endif
