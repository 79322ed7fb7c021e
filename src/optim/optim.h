/* Buckets and ZeRO, AdamW, clipping. Weights have the type of compute. The optimiser owns the
 * master slices (an alias of the weights when those are whole and of the master's type); checkpoint
 * and digest read masters through the pieces. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H
#include "compute/ops.h"
#include "model/params.h"
#include "parallel/grid.h"

enum { NORM_BLOCK = 4096 }; /* elements of one tp-local tensor whose squares are summed together */

/* Of one bucket, per rank of grid->grad: whole norm blocks, perhaps none. */
struct slice {
    int64_t first, count;   /* elements of the bucket's flat order */
    int64_t block, nblocks; /* the same as norm blocks of the bucket */
};

/* A run of one tensor's local row-major elements whose master and moments live on this rank. */
struct piece {
    const struct param *p;
    int64_t first, count;
    struct operand master, exp_avg, exp_avg_sq; /* [count] */
    struct operand weight;                      /* [count] the same run of the compute weights */
    struct operand grad;                        /* [count] the reduced gradient */
    int writes; /* this rank writes it into a checkpoint (exactly one rank does for each element) */
};

struct stretch { /* elements of a bucket */
    int bucket;
    int64_t at, count;
};

struct optim {
    const struct ops *ops;
    struct queue *q;
    const struct ops *state_ops; /* of masters and moments: the same, or the CPU's */
    struct queue *state_q;
    const struct grid *g;
    const struct params *ps;
    enum dtype type;                 /* masters, moments, gradients: F32 or F64 */
    enum dtype weight_type;          /* of compute */
    int zero_stage, ranks, rank;     /* of grid->grad */
    int weights_only;                /* the pieces' masters are the compute weights */
    int64_t t;                       /* Adam's t: updates done */
    struct operand *weights, *grads; /* [nbuckets], whole buckets */
    struct operand *masters, *m, *v; /* [nbuckets], whole at stage 0, my slice from stage 1; masters
                                        of the weights' type and whole are the weights themselves */
    int alias_of; /* tied model with both ends here: the copy's bucket shares weights with this one;
                     -1 */
    struct slice *slices; /* [nbuckets][ranks] */
    int64_t *counts;      /* [nbuckets][ranks] elements of each slice */
    struct piece *pieces;
    int npieces;
    struct stretch *partial;
    int npartial;
    int64_t npartial_count; /* PARTIAL tensors, packed for one sum over tp */
    struct stretch *copies;
    int ncopies;                   /* COPIES tensors, neighbours joined */
    struct operand packed;         /* [npartial_count] */
    int64_t *square_at, *square_n; /* my norm blocks, grouped by bucket */
    dptr blocks_at, blocks_n;      /* the same, on the device */
    int64_t nsquares;
    int64_t *square_first;                    /* [nbuckets + 1] */
    int64_t *square_counts;                   /* [ranks] */
    dptr sums, sums_all, norm, clip;          /* device: my block sums, everybody's, F64 scalars */
    double *host_sums, *tensor_sums;          /* [all blocks], [tensors of the model x tp] */
    struct request *requests;                 /* [nbuckets] */
    struct operand host_grad[2], host_weight; /* offload.c: chunks under way */
    dptr host_norm, host_clip;
    struct comm *tied_peer; /* first and last stage of a tied model at one (dp, tp): size 2; NULL */
};

/* How many of the piece's elements exist in the model (the rest is padding, at its end), and where
 * elements at .. at+n-1 of those lie in the whole tensor: as boxes, in order; returns how many. */
int64_t piece_real(const struct piece *p) LOCAL;
int piece_boxes(const struct piece *p, int64_t at, int64_t n, struct box out[BOX_RUN_MAX]) LOCAL;

/* Lists only; no communicator is touched (also for plans). state_ops: `ops`, or the CPU's, which
 * then has masters and moments in host memory. */
void optim_init(struct optim *o, const struct ops *ops, const struct ops *state_ops,
                const struct grid *g, const struct params *ps, enum dtype weight_type,
                int zero_stage) LOCAL;
/* Without gradients, masters and moments: to load the weights, whole on every replica, in the type
 * of compute. */
void optim_init_weights(struct optim *o, const struct ops *ops, const struct grid *g,
                        const struct params *ps, enum dtype weight_type) LOCAL;
/* state: for masters and moments; keep itself unless they are offloaded */
void optim_place(struct optim *o, struct arena *keep, struct arena *state) LOCAL;
/* Masters and moments live in host memory. */
static inline int optim_is_offloaded(const struct optim *o)
{
    return o->state_ops != o->ops;
}
/* Masters are apart from the compute weights. */
static inline int optim_has_masters(const struct optim *o)
{
    return optim_is_offloaded(o) || o->weight_type != o->type;
}
void optim_free(struct optim *o) LOCAL;

/* Fill this rank's masters: source writes the elements of `what` (global coordinates of p) as
 * double, row-major. Padding stays 0. optim_gather_weights follows. */
typedef enum status optim_source(void *context, const struct param *p, const struct box *what,
                                 double *out, struct err *e);
enum status optim_set_masters(struct optim *o, optim_source *source, void *context,
                              struct err *e) LOCAL;

void optim_zero_gradients(struct optim *o) LOCAL;
/* The chunk's gradients are complete: start their sums over tp copies and over grid->grad (tied
 * ends wait for optim_finish). */
void optim_reduce_chunk(struct optim *o, int chunk) COLL(tp, grad);
/* Wait for all reductions; sum tied ends. Afterwards every piece's grad is the global gradient. */
void optim_finish_reduce(struct optim *o) COLL(world);
/* Norm of the whole model's gradient: squared sums over norm blocks in double, added in canonical
 * order, each element once. */
double optim_gradient_norm(struct optim *o) COLL(world);
struct optim_step {
    double lr, beta1, beta2, eps, weight_decay, clip;
    double scale; /* the gradients are that many times too large */
};
/* The lists that the device needs, once the arena is there. */
void optim_upload_lists(struct optim *o) LOCAL;
/* One AdamW update with gradients / scale * min(1, clip/(norm + 1e-6)), then weights gathered
 * again; norm: of the gradient / scale. t goes up. */
void optim_update(struct optim *o, const struct optim_step *s, double norm) COLL(grad);
/* Compute weights from masters, then everybody's slices. */
void optim_gather_weights(struct optim *o) COLL(grad);
#endif
