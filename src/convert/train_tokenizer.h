/* pretrain-data tokenizer train: a byte-level BPE vocabulary of texts, as a tokenizer.json. */
#ifndef CONVERT_TRAIN_TOKENIZER_H
#define CONVERT_TRAIN_TOKENIZER_H
#include "convert/input_list.h"

struct train_tokenizer {
    const char *const *input; /* [ninputs]: files, folders, "-" */
    int ninputs;
    enum input_format format; /* INPUT_LINES is INPUT_TEXT here */
    const char *field;        /* of a line's object */
    const char *pattern;      /* that cuts texts into pieces: gpt2, llama3, qwen2 */
    const char *const *special;
    int nspecial;
    int64_t vocab_size, min_frequency;
    int64_t threads; /* 0: as many as there are cores */
    const char *out;
};
/* The result does not depend on the threads. E_INPUT for what the caller chose, E_FILE for what the
 * files hold; then nothing is written. */
enum status train_tokenizer(const struct train_tokenizer *a, struct err *e) LOCAL;
#endif
