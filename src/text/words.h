/* A thread's memory of pieces and their ids. Bounded: when it is full it forgets. */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H
#include <string.h>

#include "text/buffer.h"
#include "text/strings.h"

enum { WORDS_KEY = 15, WORDS_LONG = 256, WORDS_BITS = 17, WORDS_LONG_BITS = 16 };

struct words {
    struct word {          /* 32 bytes; two make a bucket, a cache line */
        uint64_t key[2];   /* the piece, padded with zeros; its length in the last byte, 0: empty */
        uint32_t n, id[3]; /* n > 3: id[0] is their place in `more` */
    } * word;              /* [2 << WORDS_BITS] */
    struct word_long {     /* pieces up to WORDS_LONG bytes */
        uint64_t hash;     /* 0: empty */
        uint32_t at, length, ids_at, n;
    } * longer;         /* [1 << WORDS_LONG_BITS] */
    struct arena arena; /* of these two: in huge pages */
    struct buffer text; /* of the longer ones */
    struct ids more;
};

void words_open(struct words *w) LOCAL;
void words_close(struct words *w) LOCAL;
/* Appends the ids of a piece of 1 .. WORDS_LONG bytes that is known, else returns 0. */
int words_get(const struct words *w, const char *piece, size_t n, struct ids *out) LOCAL;
void words_put(struct words *w, const char *piece, size_t n, const uint32_t *ids, size_t k) LOCAL;

/* ---- for a loop over many pieces ---- */

static inline void words_key(const char *piece, size_t n, uint64_t key[2])
{
    char k[16] = { 0 };

    memcpy(k, piece, n);
    memcpy(key, k, 16);
    key[1] |= (uint64_t)n << 56; /* little-endian, as configure demands */
}
/* The same without a branch; 16 bytes can be read. */
static inline void words_key_fast(const char *piece, size_t n, uint64_t key[2])
{
    static const unsigned char ones[32] = { 255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255 };
    uint64_t mask[2];

    memcpy(key, piece, 16);
    memcpy(mask, ones + 16 - n, 16);
    key[0] &= mask[0];
    key[1] = (key[1] & mask[1]) | (uint64_t)n << 56;
}
static inline struct word *words_bucket(const struct words *w, const uint64_t key[2])
{
    uint64_t h = (key[0] ^ key[1] * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;

    return &w->word[2 * (h >> (64 - WORDS_BITS))];
}
#endif
