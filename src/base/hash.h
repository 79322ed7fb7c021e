/* XXH3-128 as 32 hex digits: finds accidents, not forgery. */
#ifndef BASE_HASH_H
#define BASE_HASH_H
#include "base/types.h"

struct hash_text {
    char s[33];
};
struct hash_stream;
struct hash_text hash_bytes(const void *p, size_t n) LOCAL;
struct hash_stream *hash_open(void) LOCAL;
void hash_add(struct hash_stream *h, const void *p, size_t n) LOCAL;
struct hash_text hash_close(struct hash_stream *h) LOCAL; /* frees h */
/* The same as two numbers. */
void hash_pair(const void *p, size_t n, uint64_t to[2]) LOCAL;
void hash_close_pair(struct hash_stream *h, uint64_t to[2]) LOCAL;
#endif
