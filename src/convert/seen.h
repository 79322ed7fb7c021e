/* A set of hashes: 18 to 23 bytes each. */
#ifndef CONVERT_SEEN_H
#define CONVERT_SEEN_H
#include "base/types.h"

struct seen;
struct seen *seen_open(void) LOCAL;
int seen_add(struct seen *s, const uint64_t hash[2]) LOCAL; /* 1: it was new */
void seen_close(struct seen *s) LOCAL;                      /* NULL is fine */
#endif
