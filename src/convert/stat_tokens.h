/* pretrain-data stat: how long documents are, and how often each token comes. */
#ifndef CONVERT_STAT_TOKENS_H
#define CONVERT_STAT_TOKENS_H
#include "data/tokens.h"

enum { STAT_BINS = 48 }; /* bin b: lengths 2^b .. 2^(b+1)-1 */

struct stat_tokens {
    int64_t ntokens, vocab_size; /* vocab_size: the file's, else the largest id + 1 */
    int64_t *count;              /* [vocab_size] of each id */
    int64_t distinct;            /* ids that are there at all */
    int64_t *rank;               /* [distinct] counts, largest first */
    int64_t *length;             /* [ndocuments] ascending */
    int64_t ndocuments;          /* 0: not known */
    int64_t bin[STAT_BINS];
};
/* Reads all of an open file. E_FILE: ids, or the list of documents. */
enum status stat_tokens_read(struct stat_tokens *s, const struct tokens *t, struct err *e) LOCAL;
void stat_tokens_free(struct stat_tokens *s) LOCAL;
/* Two plots side by side: documents by length, tokens by rank. */
enum status stat_tokens_svg(const struct stat_tokens *s, const char *title, const char *path,
                            struct err *e) LOCAL;
/* The command. svg NULL: only the text. */
enum status stat_tokens(const char *path, const struct tokens_stated *stated, const char *svg,
                        struct err *e) LOCAL;
#endif
