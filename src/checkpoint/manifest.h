/* MANIFEST.json: what a checkpoint consists of, where each slab lies, and the hash of every block.
 */
#ifndef CHECKPOINT_MANIFEST_H
#define CHECKPOINT_MANIFEST_H
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/checkpoint.h"

#define CHECKPOINT_FORMAT "pretrain checkpoint" /* in the manifest and on every file's root */
enum { MANIFEST_BLOCK = 4 << 20, MANIFEST_VERSION = 1 };

struct checkpoint_file {
    char name[32]; /* in the checkpoint's folder */
    int64_t bytes;
    struct hash_text *block; /* of each MANIFEST_BLOCK bytes, the last may be shorter */
    int nblocks;
    unsigned char *checked; /* [nblocks] its hash was found right */
    struct file f;          /* open while it is in use */
    int64_t used;           /* when, for closing the oldest */
};

struct manifest_text { /* a text inside one of the files; bytes 0: none */
    int file;
    int64_t at, bytes;
};
struct manifest_texts {
    struct manifest_text input_nml, tokenizer_json;
};

/* All of c but its texts and folder is used; *text from mem_take. */
char *manifest_write(const struct checkpoint *c, const struct manifest_texts *x) LOCAL;
/* Fills c (zeroed, dir set) but for its texts; on failure c holds what checkpoint_close frees.
 * E_FILE. */
enum status manifest_read(struct checkpoint *c, struct manifest_texts *x, struct err *e) LOCAL;
int64_t manifest_blocks(int64_t bytes) LOCAL;
/* Sorts slabs by name, kind, place. */
void manifest_sort(struct checkpoint *c) LOCAL;
/* First slab of (name, kind), and how many there are. */
int manifest_find(const struct checkpoint *c, enum checkpoint_kind kind, const char *name,
                  int *n) LOCAL;
#endif
