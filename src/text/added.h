/* Added tokens: contents that are found in a text before anything else is done to it, or, those
 * with `normalized`, after it was normalised. */
#ifndef TEXT_ADDED_H
#define TEXT_ADDED_H
#include "base/err.h"

struct added_token {
    uint32_t id;
    int special, single_word, left, right, normalised;
    char *content; /* as the file has it */
    size_t n;
    size_t form_at, form_n; /* with `normalised`: what is found, in the tokenizer's forms */
};

/* Tokens that are searched for together. */
struct finder {
    struct finder_entry {
        const char *text; /* what is found; not owned */
        size_t n;
        const struct added_token *token;
    } * entry; /* [n], sorted by text */
    int n;
    uint8_t first[256];      /* a text begins with this byte */
    unsigned char firsts[3]; /* if there are no more than nfirsts <= 3 of them */
    int nfirsts;
    int from[257]; /* where the texts with a first byte begin */
    int swallows;  /* one of them takes spaces beside it, or has spaces */
};

void finder_begin(struct finder *f, int room) LOCAL;
void finder_add(struct finder *f, const struct added_token *t, const char *text, size_t n) LOCAL;
/* Sorts. Returns two equal texts' token, or NULL. */
const struct added_token *finder_end(struct finder *f) LOCAL;
void finder_free(struct finder *f) LOCAL;

/* Tokens of a text one after the other, leftmost, then longest. */
struct finding {
    const struct finder *f;
    const uint8_t *classes; /* enum unicode_class */
    const char *text;
    size_t n, at;    /* at: where the search goes on                         */
    size_t done;     /* text before it is taken                              */
    size_t from, to; /* what the token takes; from may be before done's end */
    const struct added_token *token;
};
int finder_next(struct finding *g) LOCAL; /* 0: no more */
#endif
