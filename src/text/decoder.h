/* Ids to bytes, all at once or one by one. Bytes that a byte-level tokenizer encoded come back as
 * they were, also when they are no UTF-8 (the library puts U+FFFD there). */
#ifndef TEXT_DECODER_H
#define TEXT_DECODER_H
#include "text/buffer.h"
#include "text/tokenizer.h"

struct decoder; /* one text at a time */

struct decoder *decoder_open(const struct tokenizer *t, int skip_special) LOCAL;
void decoder_close(struct decoder *d) LOCAL;
/* Appends the bytes that are certain by now; an id without a token is nothing. E_RESOURCE: the
 * file's regular expression needs too much. */
enum status decoder_add(struct decoder *d, uint32_t id, struct buffer *out, struct err *e) LOCAL;
/* The rest; then another text may begin. */
enum status decoder_end(struct decoder *d, struct buffer *out, struct err *e) LOCAL;
/* A whole text. */
enum status decoder_decode(struct decoder *d, const uint32_t *ids, size_t n, struct buffer *out,
                           struct err *e) LOCAL;
#endif
