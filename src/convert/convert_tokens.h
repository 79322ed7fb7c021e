/* pretrain-data convert and merge: token files of any format that we read, into one of any format.
 */
#ifndef CONVERT_CONVERT_TOKENS_H
#define CONVERT_CONVERT_TOKENS_H
#include "data/sampler.h"

struct convert_tokens {
    const char *const *in; /* [n], one after the other; of one vocabulary */
    int n;
    const char *to;  /* "pretrain", "megatron", "datatrove", "llm.c", "raw" */
    const char *out; /* megatron: NAME.bin, and NAME.idx is written too; datatrove: also .index,
                        .metadata */
    struct tokens_stated stated; /* of inputs that do not say it */
    int64_t vocab_size;          /* 0: the inputs' */
};
#define CONVERT_TARGETS "pretrain|megatron|datatrove|llm.c|raw"
/* Tokens and documents are kept; empty documents are none. uint16 where the vocabulary allows, else
 * uint32 (Megatron: int32). Written beside and renamed. E_INPUT for what the caller chose, E_FILE
 * for what the files hold. */
enum status convert_tokens(const struct convert_tokens *a, struct err *e) LOCAL;
#endif
