/* Classes of code points, of Unicode 16 whatever the machine's libraries know: ids must not depend
 * on them. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H
#include "base/types.h"

enum { UNICODE_POINTS = 0x110000 };

enum unicode_class {                     /* bits */
                     UNICODE_LETTER = 1, /* \p{L}                                             */
                     UNICODE_NUMBER = 2, /* \p{N}                                             */
                     UNICODE_SPACE = 4,  /* \s                                                */
                     UNICODE_WORD = 8,   /* \w of the pre-tokeniser Whitespace and of single_word */
                     UNICODE_DIGIT = 16, /* what the pre-tokeniser Digits cuts out            */
                     UNICODE_PUNCTUATION = 32, /* the pre-tokeniser Punctuation's             */
                     UNICODE_INERT = 64        /* the normal forms leave it alone             */
};

struct unicode_range {
    uint32_t first, last;
};

void unicode_classes(uint8_t *of) LOCAL; /* [UNICODE_POINTS] */
/* Ascending ranges of a property: a general category of one or two letters, a script's name, or
 * "s", "d", "w" as in \s, \d, \w ("w in class": Oniguruma's [\w] lacks some of it). From mem_take;
 * NULL: no such property. */
struct unicode_range *unicode_property(const char *name, int *n) LOCAL;
/* Lower case, up to two characters. */
int unicode_lower(uint32_t c, uint32_t to[2]) LOCAL;

/* The character at p of valid UTF-8; returns its length. */
static inline int unicode_at(const char *p, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)p;

    if (u[0] < 0x80) {
        *c = u[0];
        return 1;
    }
    if (u[0] < 0xe0) {
        *c = (u[0] & 31u) << 6 | (u[1] & 63u);
        return 2;
    }
    if (u[0] < 0xf0) {
        *c = (u[0] & 15u) << 12 | (u[1] & 63u) << 6 | (u[2] & 63u);
        return 3;
    }
    *c = (u[0] & 7u) << 18 | (u[1] & 63u) << 12 | (u[2] & 63u) << 6 | (u[3] & 63u);
    return 4;
}
/* Bytes of the character that begins with this byte. */
static inline int unicode_length(char first)
{
    unsigned char u = (unsigned char)first;

    return u < 0x80 ? 1 : u < 0xe0 ? 2 : u < 0xf0 ? 3 : 4;
}
/* The offset of the character before p[at], at > 0. */
static inline size_t unicode_before(const char *p, size_t at)
{
    do
        at--;
    while (at > 0 && (p[at] & 0xc0) == 0x80);
    return at;
}
int unicode_put(uint32_t c, char *p) LOCAL; /* UTF-8, up to 4 bytes */
#endif
