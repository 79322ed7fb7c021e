/* A pipeline step as data: one list of actions per pipeline rank. Pure: no MPI, no model.
 *
 * build = generate compute order -> lower (add transfers, each receive placed by its sender)
 *         -> place slots -> simulate.
 *
 * A stage is a run of layers; stage s of pp*chunks stages lives on rank stage_rank[s] as that
 * rank's chunk stage_chunk[s]. */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H
#include "base/err.h"

enum act {
    ACT_F,      /* forward of a chunk; on the last stage also loss and the head's backward */
    ACT_B,      /* whole backward: I then W */
    ACT_I,      /* input half */
    ACT_W,      /* weight half */
    ACT_SEND_F, /* these four post a transfer to or from the neighbouring stage on another rank */
    ACT_RECV_F,
    ACT_SEND_B,
    ACT_RECV_B,
    ACT_MOVE_F, /* the same when both stages are on this rank: */
    ACT_MOVE_B, /* chunk, mb name the *producing* side, to_* the consumer's slots */
    ACT_REDUCE, /* after the chunk's last W: its gradients may be reduced over the replicas */
    ACT_KINDS
};

struct action {
    uint8_t kind;
    uint8_t chunk;       /* of this rank */
    int16_t slot;        /* activation slot of (chunk, mb), -1 when the action has none */
    int16_t grad;        /* gradient slot of (chunk, mb), -1 */
    int16_t stash;       /* from I to W: where weight-gradient inputs wait; -1 */
    int16_t to_slot;     /* MOVE_F: activation slot of the consumer */
    int16_t to_grad;     /* MOVE_B: gradient slot of the consumer */
    int32_t mb;          /* -1: REDUCE */
    int16_t peer;        /* SEND, RECV: pipeline rank of the other end, else -1 */
    uint8_t first, last; /* the chunk is the first / last stage */
};
/* Lifetimes.
 *
 * Activation slot: from RECV_F / MOVE_F (first stage: F) to B or W. Its output buffer is the source
 * of SEND_F / MOVE_F (a forward-only list gives the slot up with that; on its last stage with F).
 *
 * Gradient slot: holds d(output) from RECV_B / MOVE_B (last stage: F, which computes it) and,
 * overwritten in place by B or I, d(input) up to SEND_B / MOVE_B (first stage: B or I).
 *
 * Stash: I to W; B uses none.
 *
 * A reused slot may still be the source of a pending send: the executor waits for it. */

enum { SCHEDULE_STAGES_MAX = 4096 };
struct schedule {
    char name[24];
    int pp, chunks, mbs;           /* stages = pp * chunks */
    int *stage_rank, *stage_chunk; /* [stages] */
    int *stage_of;                /* [pp * chunks]: stage of (rank, chunk) at rank*chunks + chunk */
    int *n;                       /* [pp] */
    struct action **list;         /* [pp][n] */
    int *slots, *grads, *stashes; /* [pp] how many of each that rank needs */
    int forward_only;
};

/* "gpipe", "1f1b", "zb-h1", "interleaved", NULL: in the order of the key's choices */
extern const char *const schedule_names[];

/* chunks > 1 only for interleaved (then mbs % pp == 0). E_INPUT with a message otherwise. mbs >= 1,
 * may be < pp. */
enum status schedule_build(struct schedule *s, const char *name, int pp, int chunks, int mbs,
                           struct err *e) LOCAL;
/* F only, over the same placement of stages as s; slots are reused as early as possible. */
enum status schedule_build_forward(struct schedule *f, const struct schedule *s, int mbs,
                                   struct err *e) LOCAL;
void schedule_free(struct schedule *s) LOCAL;

/* Seconds or any unit, per stage [stages]; the last stage's head is in its F.
 * NULL: F = I = W = 1 / chunks. */
struct schedule_cost {
    const double *f, *i, *w;
    double transfer;
};
struct schedule_report {
    int ok;                /* every promise held */
    char why[256];         /* the first that did not */
    double makespan, work; /* work: largest sum of compute over ranks */
    double bubble;         /* 1 - (sum of compute of all ranks) / (pp * makespan) */
    int peak_slots, peak_grads, peak_stashes; /* over ranks, as simulated */
};
/* Strictest transport: one in-order queue per rank, a send completes only with its receive, zero
 * buffers. Checks: each action exactly once, dependencies, matched messages in order, W of m before
 * W of m+1 in each chunk, slot lifetimes do not overlap, no deadlock. */
struct schedule_report schedule_simulate(const struct schedule *s,
                                         const struct schedule_cost *cost) LOCAL;
/* "pp0: F0 sF0 ..." one line per rank into text (mem_take), with a mark after action `mark` of rank
 * mark_rank (-1: none). */
char *schedule_print(const struct schedule *s, int mark_rank, int mark) LOCAL;
/* Split L layers over stages so that the largest stage is as cheap as possible: cost of one layer,
 * of the embedding (first stage) and the head (last stage); a stage may get 0 layers only if it is
 * first or last (then it holds only the embedding or only the head). first[stages + 1]: stage s
 * holds layers first[s] .. first[s+1]-1. Deterministic; earlier stages get fewer on ties. */
void schedule_split_layers(int layers, int stages, double layer, double embedding, double head,
                           int *first) LOCAL;
#endif
