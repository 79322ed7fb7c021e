/* A run as one rank sees it: shapes, split, schedule, tensors, slots, memory. Built from the
 * resolved input and the grid's numbers alone, so the plan of any layout and the run itself are the
 * same code. */
#ifndef TRAIN_SETUP_H
#define TRAIN_SETUP_H
#include "data/sampler.h"
#include "pipeline/pipeline.h"

struct setup {
    const struct config *c;
    struct grid g;                 /* communicators are NULL in a plan */
    const struct forward_use *use; /* NULL: training */
    const struct ops *ops;
    int threads;
    enum dtype t;
    struct dims d;
    int64_t S, B, GB;  /* sequence length now, sequences of a micro-batch, of a step */
    int mbs, stages;   /* micro-batches of a replica's step */
    int64_t positions; /* the longest S: rows of the rotary table; what is placed */
    int *first_layer;  /* [stages + 1]                      */
    struct schedule train, eval;
    struct params params;
    struct env env;
    struct optim optim;
    struct pipeline pipe;
    struct arena keep, step, scratch;
    /* offloaded to the host; empty if they are not: masters and moments; activations */
    struct arena state, saved;
    struct queue *state_q; /* of the CPU backend then; else NULL */
};

/* Could run.device = 'auto' be a device here? Else E_RESOURCE, and why. */
enum status setup_find_device(const struct config *c, int local_rank, struct err *why) LOCAL;
/* The compute backend that the input asks for; run.device 'auto' counts as 'cpu'. Looks at no
 * device. */
enum status setup_choose_ops(const struct config *c, const struct ops **ops, struct err *e) LOCAL;
/* c is resolved (dp, vocab_size known) and its rules hold. g: numbers for this rank; copied. use:
 * NULL for training; else forward passes alone, and nothing that an optimiser needs. E_INPUT. */
enum status setup_build(struct setup *s, const struct config *c, const struct grid *g,
                        const struct ops *ops, int threads, const struct forward_use *use,
                        struct err *e) LOCAL;
/* From now on sequences have this length, one of the input's. */
void setup_use_length(struct setup *s, int64_t S) LOCAL;
void setup_measure(struct setup *s) LOCAL; /* arenas' peaks */
/* After setup_measure: the arenas where operations run; those of offloading, in host memory. */
size_t setup_bytes(const struct setup *s) LOCAL;
size_t setup_host_bytes(const struct setup *s) LOCAL;
enum status setup_open(struct setup *s, struct queue *q,
                       struct err *e) LOCAL; /* allocate and place */
void setup_free(struct setup *s) LOCAL;
/* Relative seconds of each stage for the simulator. */
struct schedule_report setup_simulate(const struct setup *s) LOCAL;
#endif
