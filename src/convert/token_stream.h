/* Token files of other programs, written: tokens one after the other, then what goes beside them.
 */
#ifndef CONVERT_TOKEN_STREAM_H
#define CONVERT_TOKEN_STREAM_H
#include "base/dtype.h"
#include "base/err.h"

struct token_stream;
/* format: megatron, datatrove, llm.c, raw. wide: ids need more than 16 bits. E_INPUT: a name that
 * the format does not take. */
enum status token_stream_open(struct token_stream **s, const char *path, const char *format,
                              int wide, struct err *e) LOCAL;
enum status token_stream_add(struct token_stream *s, const int32_t *ids, int64_t n,
                             struct err *e) LOCAL;
/* The next token starts a document. */
void token_stream_document(struct token_stream *s) LOCAL;
/* Commits; frees s, also on failure. */
enum status token_stream_close(struct token_stream *s, struct err *e) LOCAL;
void token_stream_cancel(struct token_stream *s) LOCAL; /* NULL is fine */
#endif
