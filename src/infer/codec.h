/* Texts and ids of the model's own tokenizer. */
#ifndef INFER_CODEC_H
#define INFER_CODEC_H
#include "base/err.h"

struct codec;
/* json NULL: the model at `path` has none. A tokenizer that cannot be read is an error only when a
 * text comes. */
struct codec *codec_open(const char *json, size_t bytes, const char *path) LOCAL;
void codec_close(struct codec *c) LOCAL; /* NULL is fine */
/* Can it decode? Else why not, in e (the status of codec_encode then): E_INPUT: ids only. */
enum status codec_check(const struct codec *c, struct err *e) LOCAL;
/* *ids: valid until the next call. start: the text begins a document, and what the tokenizer's
 * template puts in front of one is put, unless the text spells it; what it puts behind is not, for
 * the text goes on. */
enum status codec_encode(struct codec *c, const char *text, size_t bytes, int start,
                         const int32_t **ids, int64_t *n, struct err *e) LOCAL;
/* The bytes of ids[first ..] as they follow those before; special tokens are nothing. They need not
 * be UTF-8; valid until the next call. */
enum status codec_decode(struct codec *c, const int32_t *ids, int64_t n, int64_t first,
                         const char **text, size_t *bytes, struct err *e) LOCAL;
#endif
