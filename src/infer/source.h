/* What MODEL says of itself, and its weights. */
#ifndef INFER_SOURCE_H
#define INFER_SOURCE_H
#include "infer/infer.h"
#include "train/run.h"

struct source {
    int is_checkpoint;
    int64_t length; /* of the sequences that it was trained on, or of its positions */
    int mask;       /* was it trained with the document mask?                       */
    int64_t positions, vocab_size, eos; /* eos -1: none */
    char *tokenizer_json;               /* NULL: none; only where it was read */
    size_t tokenizer_bytes;
    char mark[33]; /* changes when the model does (a folder's: with the headers of its files) */
};

/* Headers only. c: an input whose &model is the model's, for one rank. E_FILE. */
enum status source_read(struct source *m, struct config *c, const struct infer_options *o,
                        struct err *e) LOCAL;
void source_free(struct source *m) LOCAL;
/* Each rank reads what it holds. The same status everywhere. */
enum status source_load(const struct source *m, struct run *r, const char *path, struct err *e)
    COLL(world);
#endif
