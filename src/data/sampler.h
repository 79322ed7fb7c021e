/* The training data as numbered samples: a pure function of (seed, sample number). */
#ifndef DATA_SAMPLER_H
#define DATA_SAMPLER_H
#include "data/tokens.h"

struct corpus { /* the files of &data train (or validation), one after the other */
    struct tokens *file;
    int nfiles;
    /* [nfiles + 1]: samples of file i are first_sample[i] .. first_sample[i+1]-1 */
    int64_t *first_sample;
    int64_t S, samples, count; /* sequence length; P = sum of floor((tokens-1)/S); tokens in all */
    int64_t vocab_size, eod;   /* must agree between the files that say it; 0, -1: none does */
    char hash[33];             /* of the files' hashes in order */
    int borrowed;              /* the files are another corpus's */
};
/* stated: of the files that do not say it; NULL: nothing. E_FILE for a bad or too small file (P =
 * 0: says tokens, S and the cure). */
enum status corpus_open(struct corpus *c, const char *const *paths, int n, int64_t S,
                        const struct tokens_stated *stated, struct err *e) LOCAL;
/* The model has rows for ids below vocab_size: batch_fill looks at all that it reads. With look,
 * samples of the files that do not promise it are looked at now (E_FILE). */
enum status corpus_limit(struct corpus *c, int64_t vocab_size, int look, struct err *e) LOCAL;
/* A file that neither lists documents nor has an id that ends them, or NULL. */
const struct tokens *corpus_without_documents(const struct corpus *c) LOCAL;
/* The same files in samples of another length; c must outlive it. E_FILE as corpus_open. */
enum status corpus_view(struct corpus *v, const struct corpus *c, int64_t S, struct err *e) LOCAL;
void corpus_close(struct corpus *c) LOCAL;

/* Sample n of the stream -> sample of the corpus: epoch n/P, place n%P, shuffled by a permutation
 * keyed by (seed, epoch). */
int64_t sampler_index(const struct corpus *c, uint64_t seed, int shuffle, int64_t n) LOCAL;

struct batch_rows {        /* host arrays of one micro-batch [rows * S], row-major */
    int32_t *ids, *labels; /* labels shifted; -1: not counted */
    int32_t *place;        /* in the sequence */
    int32_t *start;        /* place where its document begins in the sequence; 0 without mask */
    int32_t *position;     /* place - start */
};
/* Sample k will be read soon. */
void corpus_will_need(const struct corpus *c, int64_t k) LOCAL;
/* The row of `length` places at element `at`: n tokens of the file from `first` on and their
 * labels, then places that do not count; at the file's end the last label does not. */
enum status batch_fill_run(const struct tokens *f, struct batch_rows *b, int64_t at, int64_t length,
                           int64_t first, int64_t n, int document_mask, int mask_seams,
                           struct err *e) LOCAL;
/* A row that does not count (id 0, labels -1). */
void batch_fill_none(struct batch_rows *b, int64_t at, int64_t length) LOCAL;
/* Row r gets corpus sample k; k < 0: none. Labels across a document seam do not count if mask_seams
 * (only with document_mask). */
enum status batch_fill(const struct corpus *c, struct batch_rows *b, int r, int64_t k,
                       int document_mask, int mask_seams, struct err *e) LOCAL;
#endif
