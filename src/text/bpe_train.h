/* Trains a byte-level BPE vocabulary as BpeTrainer of the library tokenizers 0.23 does, merge by
 * merge.
 *
 * Special tokens come first, then the 256 bytes in the order of the byte-level alphabet's
 * characters, then one token a merge. Each step merges the pair with the largest count, among
 * equals the one with the smallest ids, everywhere and from the left. Where a string becomes a
 * token no merge has crossed its ends, so its inside went the same way everywhere: two merges never
 * make one token, and a pair arises in one step only. (A special token may be one that a merge
 * makes, or a byte; then it is one token.) Counts are 64 bits here; the library's overflow at 2^31.
 */
#ifndef TEXT_BPE_TRAIN_H
#define TEXT_BPE_TRAIN_H
#include "text/bpe_vocabulary.h"

struct bpe_train {
    int64_t vocab_size;         /* at least bpe_train_least */
    int64_t min_frequency;      /* of a pair; 0 and 1 are the same */
    const char *const *special; /* [nspecial] UTF-8, none empty */
    int nspecial;
    void (*step)(void *self, int64_t ntokens); /* called now and then; NULL: not */
    void *self;
};

/* Size of the vocabulary before the first merge. */
int32_t bpe_train_least(const struct bpe_train *t) LOCAL;
/* The words are used up. out ends early when no pair is left. */
void bpe_train(const struct bpe_train *t, struct word_count *words, struct bpe *out) LOCAL;
#endif
