/* pretrain-data import: a raw little-endian stream of tokens becomes a token file. */
#ifndef CONVERT_IMPORT_TOKENS_H
#define CONVERT_IMPORT_TOKENS_H
#include "base/dtype.h"
#include "base/err.h"

struct import_tokens {
    const char *raw, *out;
    enum dtype dtype;        /* U16, U32, I32, I64 */
    int64_t vocab_size, eod; /* eod -1: none */
    const char *documents;   /* int64 starts; NULL: documents start at 0 and after each eod */
};
/* Every token must be in 0 .. vocab_size-1. E_INPUT for what the caller chose, E_FILE for what the
 * files hold. */
enum status import_tokens(const struct import_tokens *a, struct err *e) LOCAL;
#endif
