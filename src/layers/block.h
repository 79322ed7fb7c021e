/* A transformer block: x2 = x + attention(norm1(x)), out = x2 + mlp(norm2(x2)). Forward, input half
 * and weight half of the backward pass are separate; the weight half needs only the activations and
 * the stash. */
#ifndef LAYERS_BLOCK_H
#define LAYERS_BLOCK_H
#include "layers/layer.h"

struct block_acts {    /* one micro-batch in one block, kept from forward to backward; STEP arena */
    struct operand x;  /* [Ts, D]     the block's input (placed by the stage)  */
    struct operand n1; /* [Ts, D]     norm1(x)                                  */
    struct operand rstd1;          /* [Ts]                                                  */
    struct operand raw;            /* [T, qkv]    q and k before their norm (q/k norm only) */
    struct operand rstd_q, rstd_k; /* [T, Hl], [T, Gl]                              */
    struct operand qkv;            /* [T, qkv]    rotated q and k, v                        */
    struct operand o;              /* [T, Hl K]                                             */
    struct operand lse;            /* [Hl, T]                                               */
    struct operand x2;             /* [Ts, D]                                               */
    struct operand n2;             /* [Ts, D]                                               */
    struct operand rstd2;          /* [Ts]                                                  */
    struct operand gu;             /* [T, 2 Fl]   gate | up                                 */
    struct operand h;              /* [T, Fl]     silu(gate) * up                           */
};

struct block_stash {     /* from the input half to the weight half */
    struct operand dy2;  /* [T, D]      gradient of the block's output            */
    struct operand dgu;  /* [T, 2 Fl]                                             */
    struct operand dn2;  /* [Ts, D]                                               */
    struct operand dy1;  /* [T, D]      gradient of x2                            */
    struct operand dqk;  /* [T, qkv]    of the normed q and k (q/k norm only)     */
    struct operand dqkv; /* [T, qkv]                                              */
    struct operand dn1;  /* [Ts, D]                                               */
};

void block_acts_place(struct block_acts *a, struct arena *step,
                      const struct env *e) LOCAL; /* all but x */
void block_stash_place(struct block_stash *s, struct arena *step, const struct env *e) LOCAL;
/* out [Ts, D] */
void block_forward(struct env *e, int layer, struct block_acts *a, struct operand out,
                   const struct micro_batch *mb) COLL(tp);
/* g [Ts, D]: d(out) in, d(x) out */
void block_grad_input(struct env *e, int layer, const struct block_acts *a, struct block_stash *s,
                      struct operand g, const struct micro_batch *mb) COLL(tp);
void block_grad_weight(struct env *e, int layer, const struct block_acts *a,
                       const struct block_stash *s) COLL(tp);

/* attention.c, mlp.c: the two sub-layers; r [Ts, D] is what they add to the stream */
void attention_forward(struct env *e, int layer, const struct block_weights *w,
                       struct block_acts *a, struct operand r, const struct micro_batch *mb)
    COLL(tp);
/* s->dy1 -> s->dqkv (and dqk), dn1 */
void attention_grad_input(struct env *e, const struct block_weights *w, const struct block_acts *a,
                          struct block_stash *s, const struct micro_batch *mb) COLL(tp);
void attention_grad_weight(struct env *e, const struct block_weights *dw,
                           const struct block_acts *a, const struct block_stash *s) COLL(tp);
void mlp_forward(struct env *e, const struct block_weights *w, struct block_acts *a,
                 struct operand r) COLL(tp);
/* s->dy2 -> s->dgu, dn2 */
void mlp_grad_input(struct env *e, const struct block_weights *w, const struct block_acts *a,
                    struct block_stash *s) COLL(tp);
void mlp_grad_weight(struct env *e, const struct block_weights *dw, const struct block_acts *a,
                     const struct block_stash *s) COLL(tp);
#endif
