/* One rank's file of a checkpoint. */
#ifndef CHECKPOINT_SHARD_H
#define CHECKPOINT_SHARD_H
#include "base/hash.h"
#include "checkpoint/checkpoint.h"

struct shard { /* what a file holds; freed by shard_free */
    struct checkpoint_slab *slab;
    int nslabs; /* file is not set */
    struct hash_text *block;
    int nblocks;
    int64_t bytes;
};

/* Write the pieces that this rank writes, sync, and read back: what is on disk must be what was
 * sent there. No such piece: no file, bytes 0. s is valid in any case. */
enum status shard_write(struct shard *s, const char *path, const struct checkpoint_scalars *scalars,
                        int rank, const struct ops *ops, struct queue *q,
                        const struct piece *pieces, int npieces, struct err *e) LOCAL;
/* Sync the finished file and hash its blocks: bytes, block, nblocks of s. */
enum status shard_seal(struct shard *s, const char *path, struct err *e) LOCAL;
void shard_free(struct shard *s) LOCAL;
/* "/weights/NAME" or, with the slab's offsets behind it, "/weights/NAME/0_128". */
void shard_dataset_name(char name[256], const struct checkpoint_slab *s, int whole) LOCAL;
#endif
