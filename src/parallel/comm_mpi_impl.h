/* Inside the MPI backend. A transfer is an op. Every communicator keeps its collectives in the
 * order of their start and works on the first; point-to-point ops all progress. Every wait loop
 * progresses all communicators, so ranks may wait for their requests in any order.
 *
 * A communicator is a list of ranks of one MPI communicator with tags of its own. So making one
 * exchanges a few bytes in a wait loop of ours; MPI_Comm_split would block inside MPI, tens of
 * milliseconds where ranks outnumber cores. Ordered delivery per (sender, receiver, tag) does the
 * rest: both sides post the pieces of all collectives alike. */
#ifndef PARALLEL_COMM_MPI_IMPL_H
#define PARALLEL_COMM_MPI_IMPL_H
#include "parallel/comm_mpi.h"
#include "parallel/comm_sum.h"

#include <mpi.h>

enum {
    RING_SLOTS = 4,            /* receives that a reduction keeps posted     */
    SUM_BYTES = 512 << 10,     /* bytes of one such receive                  */
    SEGMENT_BYTES = 512 << 10, /* bytes per rank that an all-reduce handles at once */
    MESSAGE_BYTES = 4 << 20,   /* bytes of one message of other collectives  */
    P2P_BYTES = 16 << 20,      /* bytes of one message between two ranks     */
    SMALL_BYTES = 16 << 10,    /* up to here one rank sums, a root sends all */
    TAGS_EACH = 17             /* of a communicator: 0..15 point to point, 16 collectives */
};

enum op_kind {
    OP_ALL_REDUCE,
    OP_REDUCE_SCATTER,
    OP_ALL_GATHER,
    OP_ALL_TO_ALL,
    OP_BROADCAST,
    OP_BROADCAST_LARGE,
    OP_P2P,
    OP_KINDS
};

struct stream { /* bytes to or from one rank, one message at a time */
    char *at;
    int64_t left; /* not yet posted */
    MPI_Request posted;
};

struct op {
    struct op *next;
    enum op_kind kind;
    int done, phase;
    int tag; /* point to point */
    int root;
    char *in, *out;       /* out: of a reduction, my summed piece */
    char *whole;          /* all pieces, for the gather phase     */
    int64_t *send, *recv; /* [size] bytes of the pieces           */
    comm_sum_fn *sum;
    int64_t element;      /* bytes                                */
    int64_t passed, left; /* all-reduce: bytes of the segment at work, of those to come */
    int peer, sending;    /* OP_P2P */
    struct stream p2p;
};

struct mpi_engine {
    struct mpi_comm *first; /* all communicators, newest first */
    int yields;             /* idle rounds of a wait loop before it sleeps */
    MPI_Comm mpi;           /* ours alone, all ranks */
    int groups, groups_max; /* numbers given so far; what the tags allow */
};

struct mpi_comm {
    struct comm self;
    struct mpi_comm *next;
    struct mpi_engine *engine;
    int group;       /* no other group of any two of its ranks has this number */
    int *world_rank; /* [size] */
    struct op *spare;
    struct op *op_first, *op_last;   /* collectives in order of start; the first is at work */
    struct op *p2p_first, *p2p_last; /* unfinished sends and receives, in order of start    */
    struct stream *to, *from;        /* [size] of the collective at work                    */
    /* the reduction at work: receive i of `total` is in slot i % RING_SLOTS */
    MPI_Request ring[RING_SLOTS];
    char *slots, *sums; /* [RING_SLOTS][SUM_BYTES], [SUM_BYTES]          */
    const char *left;   /* the sum so far of this chunk; NULL: none            */
    int held;           /* left is a slot                                      */
    int64_t posted, taken, total;
};

extern const struct comm_ops comm_mpi_ops;

#define MPI_OK(call) comm_mpi_check((call), #call)
void comm_mpi_check(int rc, const char *call) LOCAL; /* dies with E_PEER */
/* MPI_Abort; _exit if it does not return within 2 s */
_Noreturn void comm_mpi_abort(int code) LOCAL;

struct op *comm_mpi_op_take(struct mpi_comm *m, enum op_kind kind) LOCAL;
/* Queue it and post what can be posted. */
void comm_mpi_op_start(struct mpi_comm *m, struct op *o) LOCAL;
int comm_mpi_progress(struct mpi_engine *g) LOCAL; /* 1 if anything moved */

struct mpi_pause { /* zeroed before a wait loop */
    int idle;
};
void comm_mpi_pause(const struct mpi_engine *g, struct mpi_pause *p, int moved) LOCAL;
#endif
