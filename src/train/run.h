/* One training run of this rank. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H
#include "checkpoint/checkpoint.h"
#include "parallel/comm_device.h"
#include "report/report.h"
#include "train/resolve.h"
#include "train/setup.h"

struct run {
    struct config *c;
    struct grid g;
    const struct ops *ops;
    struct queue *q;
    struct setup s;
    struct sources data;
    char *identity;              /* of the training data, for checkpoints */
    struct batch_rows rows;      /* one micro-batch, host     */
    double peak;                 /* FLOP/s of all ranks together */
    struct ops_device device;    /* where operations run on one   */
    int device_ranks;            /* of this node that share it    */
    struct comm_device links;    /* between devices               */
    char no_device[256];         /* rank 0: why 'auto' took none  */
    int attention_before;        /* debug.attention of the checkpoint; 0: chosen anew */
    char attention[256];         /* rank 0: kernels and why; "" without a choice */
    struct loss_scale scale;     /* float16: what the loss is multiplied by */
    struct loss_scale_rule rule; /* init 0: nothing is scaled */
    int64_t step;                /* finished updates          */
    int64_t attempt;
    int64_t saved;          /* step of the newest checkpoint written or resumed from; -1 */
    int resumed_elsewhere;  /* from a checkpoint outside the run's directory */
    char resume_from[4096]; /* "": started */
    char *input_nml;        /* resolved input, as stored everywhere */
    struct metrics metrics; /* rank 0 */
    int64_t resident;       /* bytes in memory before the arenas were opened */
    int64_t steps_here;     /* made by this process */
    double data_seconds;    /* of this rank, spent on rows of the last batch */
    double step_seconds;    /* running mean, for the time left */
};

/* What a command line says of a run. */
struct run_request {
    const char *deck;
    char *const *sets;
    int nsets;
};

/* mpirun -np N pretrain DECK: everything from the deck to the exit code. One voice per error. */
enum status train_main(struct comm *world, const struct run_request *r) COLL(world);

/* ---- begin.c: everything before the first step ---- */
enum status run_begin(struct run *r, struct comm *world, const struct run_request *q, struct err *e)
    COLL(world);
void run_end(struct run *r) COLL(world);
/* The part that does not depend on what the run is for: from a resolved r->c, the same everywhere,
 * to memory that is placed; weights have no values yet. use: as of setup_build. */
enum status run_open(struct run *r, struct comm *world, const struct forward_use *use,
                     struct err *e) COLL(world);
/* ---- device.c: where the run computes ---- */
/* run.device = 'auto' becomes 'cuda' if every rank has a device that can be used, else 'cpu'. */
void device_resolve(struct run *r) COLL(world);
enum status device_open(struct run *r, int threads, struct err *e) LOCAL; /* the queue */
/* debug.attention 'auto' becomes a word; after setup_build, before memory is measured. The same
 * status everywhere. */
enum status device_choose_attention(struct run *r, struct err *e) COLL(world);
/* need: bytes of this rank's arenas. Ranks that share a device share its memory. */
enum status device_check_memory(struct run *r, int64_t need, struct err *e) COLL(r->g.node);
/* Communicators whose buffers are the device's; nothing on a CPU. The same status everywhere. */
enum status device_connect(struct run *r, struct err *e) COLL(world);
void device_measure_peak(struct run *r) COLL(world);
/* For the screen; "" on a CPU that was asked for. */
void device_describe(const struct run *r, char *text, size_t bytes) LOCAL;
/* ---- step.c ---- */
struct step_result {
    double loss, norm, lr, bubble, data_seconds;
    double scale; /* of the loss in this step; NAN: not scaled */
    int64_t valid_tokens;
    int skipped, stop;
};
/* One update, or a skipped step: no counted label, or a gradient that overflowed float16. stop: a
 * rank was asked to stop (all know after this step). E_NUMERIC: loss or norm not finite, nothing
 * was updated. */
enum status run_step(struct run *r, struct step_result *out, struct err *e) COLL(world);
/* Mean loss over the samples of a validation set; changes nothing in the training stream. */
enum status run_evaluate(struct run *r, const struct corpus *set, double *loss, struct err *e)
    COLL(world);
/* ---- directory.c: the run's folder; rank 0 works, all agree ---- */
enum status directory_open(struct run *r, struct err *e) COLL(world);
void directory_mark(const struct run *r, const char *name, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 3, 4)));
/* ---- watch.c: requests to stop ---- */
void watch_start(void) LOCAL; /* SIGINT, SIGTERM, SIGUSR1; SIGPIPE is ignored */
int watch_stop_asked(const char *directory, int rank)
    LOCAL; /* a signal here, or a file STOP in directory (rank 0 looks) */
#endif
