/* Checkpoints: step_XXXXXXXX/ with rank_RRRRR.h5, index.h5, MANIFEST.json (doc/checkpoint.md).
 * Written beside (step_N.tmp-ATTEMPT), agreed on, renamed. The reader trusts only the manifest and
 * the hashes in it: no HDF5 call when loading. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H
#include "optim/loss_scale.h"
#include "optim/optim.h"

struct checkpoint_scalars { /* named scalars; attributes of index.h5's root and in the manifest */
    int64_t step, samples, tokens, adam_t, attempt;
    struct loss_scale loss; /* 0: nothing was scaled */
    int zero_stage;         /* part of the layout: only in the manifest */
};
/* One row for each. */
struct checkpoint_scalar {
    const char *name;
    size_t at;    /* in struct checkpoint_scalars                 */
    int is_real;  /* double, else int64                           */
    int optional; /* absent in older ones: 0 then */
};
enum { CHECKPOINT_SCALARS = 8, CHECKPOINT_DATA = 4096 };
extern const struct checkpoint_scalar checkpoint_scalars[CHECKPOINT_SCALARS];
/* As attributes of an HDF5 file's root. */
struct h5;
enum status checkpoint_scalars_write(struct h5 *f, const struct checkpoint_scalars *s,
                                     struct err *e) LOCAL;
struct checkpoint_texts { /* stored inside; also in every shard's manifest hash */
    const char *input_nml;
    const char *tokenizer_json;
    size_t tokenizer_bytes; /* NULL: none */
    int64_t eod;            /* of the training data, -1 none     */
    const char *data_hash;  /* of the training data; shorter than CHECKPOINT_DATA */
};

/* Write run_dir/step_N. pieces: this rank's (only `writes` ones are written). All arguments but
 * pieces [same]. The newest complete checkpoint is never touched. An invalid step_N is renamed
 * step_N.bad-k, a valid one with equal digest is kept (OK), with another digest: E_FILE. On failure
 * nothing of ours is left under a final name, all ranks return the same status and *e says why (not
 * printed: the caller decides). */
enum status checkpoint_save(const char *run_dir, const struct grid *g, const struct ops *ops,
                            struct queue *q, const struct params *ps, const struct piece *pieces,
                            int npieces, const struct checkpoint_scalars *s,
                            const struct checkpoint_texts *x, struct err *e) COLL(world);
/* Remove all but the newest keep_last and multiples of keep_every (0: none); never the newest valid
 * one. Rank 0 works. */
enum status checkpoint_retain(const char *run_dir, const struct grid *g, int keep_last,
                              int64_t keep_every, struct err *e) COLL(world);
void checkpoint_clean(const char *run_dir, const struct grid *g)
    COLL(world); /* removes stale .tmp-* at start */

/* ---- reading: any process, any layout ---- */
enum checkpoint_kind {
    CHECKPOINT_WEIGHTS,
    CHECKPOINT_EXP_AVG,
    CHECKPOINT_EXP_AVG_SQ,
    CHECKPOINT_KINDS
};
extern const char
    *const checkpoint_kind_names[CHECKPOINT_KINDS]; /* "weights", "exp_avg", "exp_avg_sq" */

struct checkpoint_slab { /* one dataset of one shard, from the manifest */
    enum checkpoint_kind kind;
    char name[96]; /* Hugging Face's */
    int nd;
    int64_t global[3];
    struct box box;
    enum dtype dtype;
    int file;
    int64_t offset; /* of its data in that file */
};
struct checkpoint { /* an open, checked manifest */
    char dir[4096];
    struct checkpoint_scalars scalars;
    int64_t eod;
    char data_hash[CHECKPOINT_DATA];
    char *input_nml, *tokenizer_json;
    size_t tokenizer_bytes;
    int dp, tp, pp, cp, ranks; /* layout it was written under, with scalars.zero_stage */
    struct checkpoint_slab *slab;
    int nslabs; /* sorted by name, kind */
    struct checkpoint_file *file;
    int nfiles;                     /* private */
    struct checkpoint_block *block; /* private */
};
/* E_FILE: what is wrong with it and what to do. Checks manifest, its hash, sizes of files; blocks
 * are checked when read. */
enum status checkpoint_open(struct checkpoint *c, const char *dir, struct err *e) LOCAL;
void checkpoint_close(struct checkpoint *c) LOCAL;
/* Elements of `what` (inside the whole tensor), row-major, converted to `to`. Every 4 MiB block
 * touched is hashed first (each once). */
enum status checkpoint_read_box(struct checkpoint *c, enum checkpoint_kind kind, const char *name,
                                const struct box *what, void *dst, enum dtype to,
                                struct err *e) LOCAL;
/* shape of a tensor; 0 if absent */
int checkpoint_shape(const struct checkpoint *c, enum checkpoint_kind kind, const char *name,
                     int64_t shape[3], enum dtype *t) LOCAL;
/* One XXH3-128 over step, samples, then masters, exp_avg, exp_avg_sq of the whole tensors in
 * params.def order. Bounded memory. */
enum status checkpoint_digest(struct checkpoint *c, char out[33], struct err *e) LOCAL;

/* run_dir's newest good checkpoint: path (size 4096) or "" when there is no step_* at all; E_FILE
 * when there are some and none is good. Bad ones are named in warnings. */
enum status checkpoint_newest(const char *run_dir, char *path, struct err *e) LOCAL;

/* Steps of all step_* folders in run_dir, good or not, newest first; *steps from mem_take. No
 * folder: none. */
enum status checkpoint_steps(const char *run_dir, int64_t **steps, int *n, struct err *e) LOCAL;

/* Fill the pieces (all of them, written or not; moments that have no memory are passed over) from
 * an open checkpoint. Shapes must match: the message names tensor and both shapes. */
enum status checkpoint_load(struct checkpoint *c, const struct ops *ops, struct queue *q,
                            const struct piece *pieces, int npieces, struct err *e) LOCAL;
#endif
