/* Is it UTF-8 (RFC 3629: no surrogates, nothing above U+10FFFF, no overlong forms)? In pieces of
 * any size. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H
#include "base/types.h"

struct utf8_check { /* start with { 0 } */
    int64_t at;     /* bytes seen; after a failure: offset of the bad byte */
    unsigned char need, low,
        high; /* bytes that the last character still lacks, range of the next */
};

int utf8_check_add(struct utf8_check *u, const void *bytes,
                   size_t n) LOCAL;                   /* nonzero: not UTF-8 */
int utf8_check_end(const struct utf8_check *u) LOCAL; /* nonzero: the last character is cut */

/* The bytes with U+FFFD in place of what is not UTF-8, one for each longest begin of a character
 * that does not go on (Unicode's "maximal subpart"). to: [3 n]. Returns its bytes; *count grows. */
size_t utf8_replace(char *to, const char *bytes, size_t n, int64_t *count) LOCAL;
/* At most n: bytes behind which a text can be cut so that both parts are replaced as the whole; 0:
 * of fewer than four. */
size_t utf8_whole(const char *bytes, size_t n) LOCAL;
#endif
