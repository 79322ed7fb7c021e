/* What is in an encoder; for encoder*.c. */
#ifndef TEXT_ENCODER_IMPL_H
#define TEXT_ENCODER_IMPL_H
#include "text/encoder.h"
#include "text/merger.h"
#include "text/scan.h"
#include "text/tokenizer_impl.h"
#include "text/words.h"

enum { SINK_IDS = 1 << 16 }; /* so many ids are handed on at a time */

struct encoder {
    const struct tokenizer *t;
    struct split_scratch split;
    struct scan scan; /* kind SCAN_NONE: by the splitter */
    struct merger merger;
    struct words words;
    struct buffer form, spare; /* normalised text */
    struct ids own, *out;
    encoder_sink *sink;
    void *to;
    int specials_as_text;
    int64_t specials;
};

/* The ids of one piece; a split_fn. */
enum status encoder_piece(void *c, const char *p, size_t n, struct err *e) LOCAL;
/* Of a text whose pieces c->scan finds. */
enum status encoder_scan(struct encoder *c, const char *text, size_t n, struct err *e) LOCAL;
/* Puts the ids of frequent tokens' texts into c->words. */
void encoder_seed(struct encoder *c) LOCAL;
/* Hands on what is there, if it is enough. */
enum status encoder_flush(struct encoder *c, size_t at_least, struct err *e) LOCAL;
#endif
