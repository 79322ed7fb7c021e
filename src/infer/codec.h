/* Texts and ids of the model's own tokenizer. */
#ifndef INFER_CODEC_H
#define INFER_CODEC_H
#include "base/err.h"

struct codec;
/* json NULL: the model has none. E_FILE: a tokenizer that this build cannot read. */
enum status codec_open(struct codec **c, const char *json, size_t bytes, struct err *e) LOCAL;
void codec_close(struct codec *c) LOCAL; /* NULL is fine */
/* *ids: valid until the next call. start: with what the tokenizer puts before a text. c NULL:
 * E_INPUT, for the model takes ids only. */
enum status codec_encode(struct codec *c, const char *text, size_t bytes, int start,
                         const int32_t **ids, int64_t *n, struct err *e) LOCAL;
/* The bytes of the ids, which need not be UTF-8: *text is valid until the next call. */
enum status codec_decode(struct codec *c, const int32_t *ids, int64_t n, const char **text,
                         size_t *bytes, struct err *e) LOCAL;
#endif
