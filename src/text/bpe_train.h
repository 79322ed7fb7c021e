/* Trains a byte-level BPE vocabulary as BpeTrainer of the library tokenizers 0.23 does, merge by
 * merge.
 *
 * Special tokens come first, then the 256 bytes in the order of the byte-level alphabet's
 * characters, then one token a merge. Each step merges the pair with the largest count, among
 * equals the one with the smallest ids. Three habits of the library decide about the result where
 * two merges make one token (ab+c and a+bc), and are kept: a token has the id of its first merge;
 * an entry of the queue covers the words in which the pair arose at one time, so that a pair may be
 * merged more than once, and its last time is its rank; and a merge does not take the merged pairs
 * off the pair's own count. Counts are 64 bits here; the library's overflow at 2^31. */
#ifndef TEXT_BPE_TRAIN_H
#define TEXT_BPE_TRAIN_H
#include "text/word_count.h"

enum { BPE_BYTES = 256 };

struct bpe_train {
    int64_t vocab_size;         /* at least bpe_train_least */
    int64_t min_frequency;      /* of a pair; 0 and 1 are the same */
    const char *const *special; /* [nspecial] UTF-8, none empty */
    int nspecial;
    void (*step)(void *self, int64_t ntokens); /* called now and then; NULL: not */
    void *self;
};

struct bpe_merge {
    uint64_t pair; /* a << 32 | b */
    int32_t token; /* what the two make */
};
struct bpe {
    int32_t ntokens, nspecial; /* equal special tokens count once */
    int64_t *start;            /* [ntokens + 1] where a token begins in text */
    char *text;                /* a token's bytes; a special one's as given if it is `raw` */
    unsigned char *raw;        /* [nspecial] it has characters that stand for no byte */
    struct bpe_merge *merge;   /* [nmerges] in the order in which an encoder applies them */
    int32_t nmerges;
};

/* Size of the vocabulary before the first merge. */
int32_t bpe_train_least(const struct bpe_train *t) LOCAL;
/* The words are used up. out ends early when no pair is left. */
void bpe_train(const struct bpe_train *t, struct word_count *words, struct bpe *out) LOCAL;
/* The token as tokenizer.json writes it, in UTF-8, into text [2 bytes for each of the token's];
 * returns the length. */
size_t bpe_token_text(const struct bpe *b, int32_t token, char *text) LOCAL;
void bpe_close(struct bpe *b) LOCAL;
#endif
