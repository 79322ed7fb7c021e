/* The inputs in batches of raw bytes: whole lines, or a text and parts of it. Where they are cut
 * depends on the inputs and the tokenizer alone. */
#ifndef CONVERT_BATCHES_H
#define CONVERT_BATCHES_H
#include "convert/input_list.h"
#include "text/tokenizer.h"

/* Where the next batch begins. */
struct place {
    int64_t input;
    int64_t at, lines; /* of the unpacked text: bytes and newlines before */
    int64_t inside;    /* in a text */
};

struct batch_head {      /* what travels with the bytes to another rank */
    int64_t number;      /* from 0 */
    int64_t format;      /* enum input_format */
    int64_t first, last; /* of a text: its begin, its end are in it */
    int64_t at, lines;   /* as in struct place, of its first byte */
    int64_t n;
};

struct batch {
    struct batch_head h;
    char *text; /* [h.n] */
    size_t room;
    int64_t input;      /* [list] */
    struct place after; /* behind it */
    int64_t done;       /* bytes of all inputs, as they are, read so far */
    uint64_t whole[2];  /* hash of a text in parts, with `whole` below */
};

struct batches;
struct batches_of {
    const struct input_list *list;
    const struct tokenizer *t; /* NULL: bytes */
    int whole, replace;        /* hash texts in parts; with U+FFFD for what is not UTF-8 */
};
struct batches *batches_open(const struct batches_of *of, const struct place *from) LOCAL;
/* *b is filled anew, zeroed before the first call. *more 0: there was no other. E_FILE: an input
 * cannot be read, or a line or what cannot be cut is longer than memory should hold. */
enum status batches_next(struct batches *s, struct batch *b, int *more, struct err *e) LOCAL;
void batches_close(struct batches *s) LOCAL;
void batch_room(struct batch *b, size_t n) LOCAL; /* for n bytes; keeps what is there */
void batch_free(struct batch *b) LOCAL;
#endif
