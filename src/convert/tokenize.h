/* pretrain-data tokenize: texts become one token file, or two when a share is held out for
 * validation. */
#ifndef CONVERT_TOKENIZE_H
#define CONVERT_TOKENIZE_H
#include "base/err.h"

struct tokenize {
    const char *tokenizer; /* "bytes", or a tokenizer.json */
    const char *eod;       /* of document_ids.h, like the next */
    int specials_as_text;
    const char *const *input; /* [ninputs]: .jsonl, .ndjson, .json by lines; all else as texts */
    int ninputs;
    const char *field; /* of a line's object */
    const char *out;
    const char *validation; /* NULL: no split */
    double fraction;        /* document d is held out if floor((d+1)F) > floor(dF) */
};
/* E_INPUT for what the caller chose (an empty part too), E_FILE for what the files hold; then
 * nothing is written. */
enum status tokenize(const struct tokenize *a, struct err *e) LOCAL;
#endif
