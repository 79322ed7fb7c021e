/* World -> tp (fastest), cp, dp, pp. */
#ifndef PARALLEL_GRID_H
#define PARALLEL_GRID_H
#include "parallel/comm.h"

struct grid {
    int ranks, rank;
    int tp, cp, dp, pp; /* sizes; their product is ranks */
    int tp_rank, cp_rank, dp_rank, pp_rank;
    int nodes, node_ranks, node_rank;
    int cores;                 /* of this node that its ranks may use, all together */
    int mask_ranks, mask_rank; /* ranks of the node that may use my cores; my place there */
    struct comm *world;
    struct comm *tp_comm, *cp_comm, *dp_comm, *pp_comm;
    struct comm *grad;  /* dp x cp: gradients are summed here                   */
    struct comm *model; /* tp x pp at one dp, cp: together one copy of the model */
    struct comm *kv; /* the tp ranks that hold copies of one key/value head (size 1 when none do) */
    struct comm *node;
};

/* The arithmetic alone. dp = 0: what is left. On refusal: E_INPUT, and e says the whole arithmetic
 * once, e.g. "dp 2 x tp 2 x cp 1 x pp 2 = 8 ranks, but mpirun started 6: use -np 8, or dp = 0 with
 * a multiple of 4 ranks". */
enum status grid_sizes(int ranks, int tp, int cp, int pp, int *dp, struct err *e) LOCAL;
int grid_rank_of(const struct grid *g, int tp_rank, int cp_rank, int dp_rank, int pp_rank) LOCAL;
/* kv_copies: tp ranks per key/value head, 1 if tp <= G. All arguments [same]. */
enum status grid_create(struct grid *g, struct comm *world, int tp, int cp, int dp, int pp,
                        int kv_copies, struct err *e) COLL(world);
void grid_free(struct grid *g) COLL(world);
/* A mismatched launcher started N singletons: size 1, but SLURM_NTASKS, PMI_SIZE,
 * OMPI_COMM_WORLD_SIZE... say more. E_INPUT with the cure. */
enum status grid_check_launcher(int world_size, struct err *e) LOCAL;
/* Pin this rank's threads to its share of the node's cores (none if ranks outnumber cores) and
 * return threads to use. asked = 0: max(1, cores / ranks on the node). */
int grid_pin_threads(const struct grid *g, int asked) LOCAL;
#endif
