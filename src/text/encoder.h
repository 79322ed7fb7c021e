/* Text to ids. One encoder per thread; its memory is bounded, but for pieces that cannot be cut. */
#ifndef TEXT_ENCODER_H
#define TEXT_ENCODER_H
#include "text/buffer.h"
#include "text/tokenizer.h"

struct encoder;

struct encoder *encoder_open(const struct tokenizer *t) LOCAL;
void encoder_close(struct encoder *c) LOCAL;
/* Contents of special tokens inside a text are ordinary text (the library's encode_special_tokens);
 * the default, 0, takes them as those tokens. */
void encoder_set_specials_as_text(struct encoder *c, int on) LOCAL;
/* Special tokens found inside texts so far. */
int64_t encoder_specials_found(const struct encoder *c) LOCAL;

/* Appends the ids of one text. add_special: with what the template puts in front and behind.
 * E_FILE: the text is not UTF-8. E_INPUT: a character without an id. E_RESOURCE: the file's regular
 * expression needs too much. */
enum status encoder_encode(struct encoder *c, const char *text, size_t n, int add_special,
                           struct ids *out, struct err *e) LOCAL;
/* Of a part of a text, cut at places of tokenizer_cut(): the first begins the text, and has what
 * the template puts in front; the last has what it puts behind. */
enum status encoder_part(struct encoder *c, const char *text, size_t n, int first, int last,
                         struct ids *out, struct err *e) LOCAL;
/* The same in pieces, for long texts: sink gets some 64 Ki ids at a time, in order. */
typedef enum status encoder_sink(void *to, const uint32_t *ids, size_t n, struct err *e);
enum status encoder_stream(struct encoder *c, const char *text, size_t n, int add_special,
                           encoder_sink *sink, void *to, struct err *e) LOCAL;
#endif
