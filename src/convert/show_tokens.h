/* pretrain-data info, peek and check. */
#ifndef CONVERT_SHOW_TOKENS_H
#define CONVERT_SHOW_TOKENS_H
#include "data/tokens.h"

/* stated: of a file that does not say it. */
enum status show_tokens_info(const char *path, const struct tokens_stated *stated,
                             struct err *e) LOCAL;
/* The first `tokens` tokens of the `documents` documents from `first` on: text where we can decode,
 * else ids. Where no documents are listed, the whole file is one. */
enum status show_tokens_peek(const char *path, const struct tokens_stated *stated, int64_t first,
                             int64_t documents, int64_t tokens, struct err *e) LOCAL;
enum status show_tokens_check(const char *path, const struct tokens_stated *stated,
                              struct err *e) LOCAL;
#endif
