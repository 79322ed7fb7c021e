/* The tokens of a byte-level BPE vocabulary while it grows. */
#ifndef TEXT_BPE_VOCABULARY_H
#define TEXT_BPE_VOCABULARY_H
#include "text/word_count.h"

enum { BPE_BYTES = 256 };

struct bpe {
    int32_t ntokens, nspecial; /* equal special tokens count once */
    int64_t *start;            /* [ntokens + 1] where a token begins in text */
    char *text;                /* a token's bytes; a special one's as given if it is `raw` */
    unsigned char *raw;        /* [nspecial] it has characters that stand for no byte */
    uint64_t *merge;           /* [nmerges] a << 32 | b, in order */
    int32_t nmerges;
};
/* The token as tokenizer.json writes it, in UTF-8, into text [2 bytes for each of the token's];
 * returns the length. */
size_t bpe_token_text(const struct bpe *b, int32_t token, char *text) LOCAL;
void bpe_close(struct bpe *b) LOCAL;

struct bpe_vocabulary {
    struct bpe *out;       /* grows with every token */
    struct word_count ids; /* bytes of a token -> id + 1; a raw one is not in it */
    int32_t tokens_room;
    int64_t text_room;
    int32_t byte[BPE_BYTES]; /* id of a byte */
};
/* Special tokens, then the bytes in the order of their characters. */
void bpe_vocabulary_start(struct bpe_vocabulary *v, const char *const *special, int nspecial,
                          struct bpe *out) LOCAL;
/* The token that the two of the pair make; the same string has the same one. */
int32_t bpe_vocabulary_join(struct bpe_vocabulary *v, uint64_t pair) LOCAL;
void bpe_vocabulary_close(struct bpe_vocabulary *v) LOCAL; /* out stays */
#endif
