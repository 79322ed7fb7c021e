/* A map from byte strings to numbers. Grows while it is filled; then read-only. */
#ifndef TEXT_STRINGS_H
#define TEXT_STRINGS_H
#include <string.h>

#include "text/buffer.h"

struct strings {
    struct strings_slot {
        uint32_t hash, at, n, value; /* hash 0: empty */
    } * slot;
    uint32_t mask, count, longest;
    uint64_t *filter; /* [2^filter_bits bits] by the hash; 0: no such string. NULL: not made */
    int filter_bits;
    struct buffer pool; /* the strings, at most 4 GiB of them */
};

/* Returns the slot: .value is `value` if the string was new, else what it was. */
struct strings_slot *strings_add(struct strings *s, const void *p, size_t n, uint32_t value) LOCAL;
int64_t strings_find(const struct strings *s, const void *p, size_t n) LOCAL; /* -1: absent */
/* When it is full: absent strings are then found absent with one access to a small table. */
void strings_make_filter(struct strings *s) LOCAL;
void strings_free(struct strings *s) LOCAL;

static inline uint64_t strings_hash(const void *p, size_t n)
{
    const char *c = p;
    uint64_t h = n * 0x9e3779b97f4a7c15u, x;

    for (; n > 8; n -= 8, c += 8) {
        memcpy(&x, c, 8);
        h = (h ^ x) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    x = 0;
    memcpy(&x, c, n);
    h = (h ^ x) * 0xff51afd7ed558ccdu;
    return h ^ h >> 29;
}
#endif
