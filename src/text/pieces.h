/* Cuts a text into the pieces that a byte-level BPE treats on their own: words with the space
 * before them, numbers, signs, white space. */
#ifndef TEXT_PIECES_H
#define TEXT_PIECES_H
#include "base/err.h"

/* Writes the ends, counted from text, of the first pieces of text[at, n), at most room; returns how
 * many. The rest is cut by the next call: nothing before a piece decides about it. It is UTF-8,
 * n < 2^32, and 16 bytes more can be read. self belongs to one thread. */
typedef int pieces_cut(void *self, const char *text, size_t at, size_t n, uint32_t *ends, int room);

struct pieces_pattern {
    const char *name, *regex;
    int is_byte_level; /* GPT-2's, which the pre-tokeniser ByteLevel itself has; else Llama-3's, */
    int digits;        /* in which so many digits are a piece */
};
/* gpt2, llama3, qwen2; NULL: no such name. */
const struct pieces_pattern *pieces_find(const char *name) LOCAL;

struct pieces; /* a pattern, ready to cut */
enum status pieces_open(struct pieces **p, const struct pieces_pattern *pattern,
                        struct err *e) LOCAL;
pieces_cut pieces_next LOCAL;
void pieces_close(struct pieces *p) LOCAL; /* NULL is fine */
#endif
