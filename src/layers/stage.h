/* A chunk of layers on this rank: perhaps the embedding, some blocks, perhaps the head. */
#ifndef LAYERS_STAGE_H
#define LAYERS_STAGE_H
#include "layers/block.h"
#include "layers/ends.h"
#include "layers/window.h"

struct stage {
    int first_layer, layers, embedding, head;
};

/* Windows that all slots share; without keys every block has its own place on the device. */
struct acts_window {
    struct window w;
    struct block_acts frame[WINDOW_FRAMES];
};
struct stash_window {
    struct window w;
    struct block_stash frame[WINDOW_FRAMES];
};

struct stage_acts {           /* one activation slot; big enough for any chunk of the rank */
    struct operand in, out;   /* [Ts, D] the chunk's; of one without blocks both are `in` */
    struct block_acts *block; /* [layers]; with a window only those count that it holds */
    struct acts_window *window;
    int slot;
};
struct stage_stash {
    struct block_stash *block; /* [layers], or one that all layers share (whole backward) */
    struct stash_window *window;
    int slot;
};

void stage_windows_place(struct acts_window *a, struct stash_window *s, struct arena *step,
                         struct arena *host, const struct env *e) LOCAL;
void stage_acts_place(struct stage_acts *a, struct arena *step, const struct env *e,
                      int layers) LOCAL;
/* Without a backward pass: all blocks share what they use, and the stream is one buffer. */
void stage_acts_share(struct stage_acts *a, struct arena *step, const struct env *e, int layers,
                      const struct block_acts *shared) LOCAL;
void stage_stash_place(struct stage_stash *s, struct arena *step, const struct env *e,
                       int layers) LOCAL;
struct operand stage_output(const struct stage *st, const struct stage_acts *a) LOCAL;
/* keep: a backward follows. g, with keep on the last stage: receives d(output of the blocks). */
void stage_forward(struct env *e, const struct stage *st, struct stage_acts *a, int keep,
                   struct operand g, dptr loss, double scale, const struct micro_batch *mb)
    COLL(tp);
/* g: d(output) in, d(input) out. weights: also the weight half, layer by layer, with one shared
 * stash. */
void stage_backward(struct env *e, const struct stage *st, struct stage_acts *a,
                    struct stage_stash *s, struct operand g, int weights,
                    const struct micro_batch *mb) COLL(tp);
void stage_grad_weight(struct env *e, const struct stage *st, struct stage_acts *a,
                       struct stage_stash *s) COLL(tp);
#endif
