/* pretrain-data info, peek and check. */
#ifndef CONVERT_SHOW_TOKENS_H
#define CONVERT_SHOW_TOKENS_H
#include "base/err.h"

enum status show_tokens_info(const char *path, struct err *e) LOCAL;
/* The first `tokens` tokens of the `documents` documents from `first` on: text where we can decode,
 * else ids. */
enum status show_tokens_peek(const char *path, int64_t first, int64_t documents, int64_t tokens,
                             struct err *e) LOCAL;
enum status show_tokens_check(const char *path, struct err *e) LOCAL;
#endif
