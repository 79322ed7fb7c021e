/* What MODEL says of itself, and its weights. */
#ifndef INFER_MODEL_H
#define INFER_MODEL_H
#include "infer/infer.h"
#include "train/run.h"

struct model {
    int is_checkpoint;
    int64_t length; /* of the sequences that it was trained on, or of its positions */
    int mask;       /* was it trained with the document mask?                       */
    int64_t positions, vocab_size, eos; /* eos -1: none */
    char *tokenizer_json;               /* NULL: none; only where it was read */
    size_t tokenizer_bytes;
    char mark[33]; /* changes when the model does (a folder's: with the headers of its files) */
};

/* Headers only. c: an input whose &model is the model's, for one rank. E_FILE. */
enum status model_read(struct model *m, struct config *c, const struct infer_options *o,
                       struct err *e) LOCAL;
void model_free(struct model *m) LOCAL;
/* Each rank reads what it holds. The same status everywhere. */
enum status model_load(const struct model *m, struct run *r, const char *path, struct err *e)
    COLL(world);
#endif
