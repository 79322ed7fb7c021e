/* What the layers share: the environment of a rank, tensor-parallel transfers, weights of a block.
 */
#ifndef LAYERS_LAYER_H
#define LAYERS_LAYER_H
#include "compute/ops.h"
#include "model/params.h"
#include "parallel/grid.h"

/* Everything a layer needs beside its own buffers. Ts = T/tp: with tp > 1 the residual stream, its
 * norms and its gradient are cut over the tokens (sequence parallel, Korthikanti et al. 2022). */
enum { MAX_TP = 1024, ENV_LENGTHS = 33 };

/* What a run without a backward pass wants of the model. */
struct forward_use {
    int token_loss; /* the loss of every token                  */
    int logits;     /* logits, all of the vocabulary            */
    int64_t rows;   /* of so many tokens of a micro-batch; 0: of all */
    int64_t kept;   /* keys and values of so many tokens of each sequence stay; 0: none do */
};

struct env {
    const struct ops *ops;
    struct queue *q;
    const struct grid *g;
    const struct params *ps;
    struct dims d;
    int64_t B, S, T, Ts;
    enum dtype t, stat, grad;        /* activations and weights; statistics; weight gradients */
    struct operand *weights, *grads; /* [nbuckets], owned by the optimiser */
    struct operand rope;             /* [max_position, K] in stat             */
    struct attention_shape att;
    int64_t other[ENV_LENGTHS]; /* lengths of sequences beside the longest */
    int nothers;
    int threads;
    const struct forward_use *use; /* NULL: training         */
    int first_layer;               /* of this rank's         */
    struct scratch {               /* SCRATCH arena; contents live within one action */
        struct operand wide;       /* [T, D]      a gathered input            */
        struct operand partial;    /* [T, D]      a product before its sum over tp */
        struct operand r;          /* [Ts, D]     what a sub-layer adds to the stream */
        struct operand dh;         /* [T, Fl]     */
        struct operand dout;       /* [T, Hl K]   */
        struct operand delta;      /* [Hl, T]     */
        dptr attention;            /* attention_scratch bytes */
        struct operand logits;     /* [Tc, Vl]    Tc = head_rows tokens at a time (last stage) */
        struct operand dlogits;    /* [Tc, Vl]    in t; the logits themselves when they are in t */
        struct operand dhead;      /* [T, D]      */
        struct operand nf, rstd_f; /* [Ts, D], [Ts] final norm */
        struct operand stats, stats_all, lse; /* [Tc, 3], [tp, Tc, 3], [Tc] */
        struct operand picked;                /* [use->rows, D] of the normed stream */
    } s;
    int64_t head_rows;
};

/* One micro-batch on the device, int32 [T] each (T = all tokens of the replica's micro-batch). */
struct micro_batch {
    dptr ids, labels, place, start, position;
    /* As env's forward_use says, else NONE. Last stage: */
    struct operand token_loss; /* [T] in stat; 0 where the label does not count               */
    struct operand logits;     /* [rows, Vp] in stat; in the order that head_unpack undoes    */
    dptr rows;                 /* int32 [use->rows]: tokens of the T; NULL: all               */
    /* Every stage: keys and values of the sequences so far. */
    struct operand kept; /* [layers of the rank][B use->kept][2 Gl K]: keys | values          */
    dptr kept_at;        /* int32 [T]: where a token's go in [B use->kept]; -1: nowhere       */
    dptr kept_place;     /* int32 [B use->kept]: 0, 1, ... of each sequence                   */
};

/* Sizes and types; no communicators are touched (also for plans). use: NULL for training, else
 * kept by the caller. */
void env_init(struct env *e, const struct ops *ops, const struct grid *g, const struct params *ps,
              int64_t B, int64_t S, enum dtype t, int threads, const struct forward_use *use) LOCAL;
/* Sequences of S tokens, too, will be used; env_init was given the longest. Before env_place. */
void env_add_length(struct env *e, int64_t S) LOCAL;
/* From now on sequences have S tokens, at most as many as at first; cp tp divides B S. */
void env_use_length(struct env *e, int64_t S) LOCAL;
void env_place(struct env *e, struct arena *keep, struct arena *scratch, int64_t positions,
               int last_stage) LOCAL;
/* cos and sin of every position with the model's scaling (linear; llama3 as in formats.md 2.3),
 * computed in double. */
struct rope_scaling {
    int type;
    double factor, low, high;
    int64_t original;
};
void env_fill_rope(struct env *e, const struct rope_scaling *s, int64_t positions) LOCAL;

/* ---- tensor parallel ---- */
/* in [Ts, D] of every tp rank -> [T, D]: in itself when tp = 1, else buf. */
struct operand tp_gather(struct env *e, struct operand in, struct operand buf) COLL(tp);
/* Where a partial product that ends in `out` [Ts, D] is to be written: out when tp = 1, else
 * scratch partial [T, D]. */
struct operand tp_partial(struct env *e, struct operand out) LOCAL;
/* My Ts rows of a gathered [T, D]. */
struct operand tp_mine(const struct env *e, struct operand wide) LOCAL;
/* Sum of the partial products of all tp ranks, my Ts rows -> out. Nothing when tp = 1. */
void tp_scatter(struct env *e, struct operand partial, struct operand out) COLL(tp);

static inline int operand_given(struct operand o)
{
    return o.p.p != NULL;
}

/* ---- weights: views into a bucket ---- */
struct block_weights {
    struct operand norm1, wqkv, wo, norm2, wgu, wdown;
    struct operand bqkv, bo, bgu, bdown, qnorm, knorm; /* NONE if the model has none */
};
/* Weights (or gradients) reach the layers only between acquire and release; no-ops below ZeRO
 * stage 3. */
struct block_weights weights_acquire(struct env *e, int layer) LOCAL;
void weights_release(struct env *e, int layer) LOCAL;
struct block_weights weights_grads(struct env *e, int layer) LOCAL;
struct head_weights {
    struct operand norm, head;
    int64_t first, rows, real;
}; /* vocabulary rows first.. of which `real` exist */
struct head_weights weights_head(
    struct env *e, const struct operand *from) LOCAL; /* from: e->weights or e->grads */
struct embed_weights {
    struct operand w;
    int64_t first, rows;
};
struct embed_weights weights_embed(struct env *e, const struct operand *from) LOCAL;
#endif
