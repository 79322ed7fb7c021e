/* Slots and the executor: one loop runs an action list, whatever the schedule's name. */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H
#include "layers/stage.h"
#include "optim/optim.h"
#include "schedule/schedule.h"

struct pipeline_slot { /* activations of one (chunk, micro-batch) */
    struct stage_acts acts;
    struct request in, out; /* receive into acts.in; send of the chunk's output */
};
struct pipeline_grad { /* gradient at a chunk's border, in place from output to input */
    struct operand g;  /* [Ts, D] */
    struct request in, out;
};

struct pipeline {
    struct env *env;
    struct optim *optim;
    const struct schedule *train, *eval;
    int rank; /* in the pipeline */
    int chunks;
    struct stage *stage;    /* [chunks] of this rank */
    int most_layers, split; /* split: the list has I and W apart */
    struct pipeline_slot *slots;
    int nslots;
    struct pipeline_grad *grads;
    int ngrads;
    struct stage_stash *stashes;
    int nstashes;
    struct acts_window acts; /* of offloaded slots */
    struct stash_window stash;
    int points; /* in ops->lanes, of both */
    struct micro_batch *mb;
    int mbs;                  /* [mbs] device arrays of one step */
    dptr kept_place;          /* int32 [B kept]: 0, 1, ... of each sequence  */
    struct block_acts shared; /* of all blocks, if there is no backward pass */
    dptr loss;     /* F64: sum over counted labels of this rank's micro-batches (last stage) */
    int64_t step;  /* for the recorder */
    double waited; /* seconds of the last list spent waiting for a neighbour */
    /* of the current run */
    double scale;
    int training;
};

/* Blocks of which a rank keeps activations at a time. first_layer: the split over stages. */
int pipeline_kept_blocks(const struct schedule *train, const int *first_layer, int rank) LOCAL;
/* Lists only (also for plans). eval NULL: no evaluation; train NULL: nothing
 * else (o is NULL then). offload: what a window on the device need
 * not hold of activations and stashes lives in host memory. */
void pipeline_init(struct pipeline *p, struct env *e, struct optim *o, const struct schedule *train,
                   const struct schedule *eval, const int *first_layer, int offload) LOCAL;
void pipeline_place(struct pipeline *p, struct arena *step, struct arena *host) LOCAL;
void pipeline_free(struct pipeline *p) LOCAL;
/* Host rows of micro-batch m -> device. */
void pipeline_upload(struct pipeline *p, int m, const int32_t *ids, const int32_t *labels,
                     const int32_t *place, const int32_t *start, const int32_t *position) LOCAL;
/* Of an env whose forward_use keeps keys: once; then where those of mb's tokens go
 * (micro_batch.kept_at). */
void pipeline_upload_places(struct pipeline *p) LOCAL;
void pipeline_upload_kept(struct pipeline *p, int m, const int32_t *kept_at) LOCAL;
/* [use->rows]: those whose logits are asked for. */
void pipeline_upload_rows(struct pipeline *p, int m, const int32_t *rows) LOCAL;
/* One training step's list: gradients accumulate, chunks are reduced as they finish. scale: 1 /
 * counted labels. */
void pipeline_train(struct pipeline *p, double scale) COLL(world);
void pipeline_evaluate(struct pipeline *p) COLL(world);
#endif
