/* The pieces of the well-known expressions (pattern.h: gpt2, llama3, qwen2) found by bit masks, 64
 * bytes at a time: what the regular expression finds, many times faster. */
#ifndef TEXT_SCAN_H
#define TEXT_SCAN_H
#include "base/types.h"

enum scan_kind { SCAN_NONE, SCAN_GPT2, SCAN_LLAMA3, SCAN_QWEN2 };

struct scan_masks {                 /* bit i: byte i of 64 */
    uint64_t letter, number, space; /* all bytes of a character have its class */
    uint64_t newline;               /* \r \n     */
    uint64_t blank;                 /* U+0020    */
    uint64_t quote;                 /* '         */
    uint64_t high;                  /* not ASCII */
};

/* Masks of ASCII characters of `blocks` times 64 bytes. */
typedef void scan_classify(const unsigned char *p, size_t blocks, struct scan_masks *to);

struct scan { /* a thread's */
    enum scan_kind kind;
    const uint8_t *classes; /* enum unicode_class */
    scan_classify *classify;
    struct scan_masks *m; /* [words + 1] */
    uint64_t *start;      /* [words + 1]: a piece begins */
    size_t room;
};

enum scan_kind scan_kind_of(const char *pattern_name) LOCAL; /* NULL: SCAN_NONE */
void scan_open(struct scan *s, enum scan_kind kind, const uint8_t *classes) LOCAL;
void scan_free(struct scan *s) LOCAL;
/* Marks the pieces of the begin of text[n], valid UTF-8, n > 0, in s->start. Returns the bytes that
 * they cover, a border of pieces, n unless the text is longer than some 16 KiB. */
size_t scan_pieces(struct scan *s, const char *text, size_t n) LOCAL;

scan_classify *scan_classifier(void) LOCAL; /* the fastest that this machine has */
scan_classify scan_classify_baseline LOCAL;
scan_classify scan_classify_avx2 LOCAL;
scan_classify scan_classify_avx512 LOCAL;
#endif
