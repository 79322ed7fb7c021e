/* The commands of pretrain-data: their options, texts and functions. */
#ifndef TOOLS_PRETRAIN_DATA_H
#define TOOLS_PRETRAIN_DATA_H
#include "base/options.h"

#define DATA_INPUTS_ABOUT                                                                        \
    "An INPUT is a file, a folder (searched for names that end in .txt, .md, .jsonl, .ndjson,\n" \
    ".json, in the order of their bytes; hidden ones are left out) or -, standard input. gzip\n" \
    "and zstd are unpacked on the way.\n"
#define DATA_TOKENIZE_ABOUT                                                                       \
    "Make a token file of text.\n" DATA_INPUTS_ABOUT                                              \
    "A name with .jsonl, .ndjson or .json: one JSON object a line, each a document; any other\n"  \
    "is a text and one document, if --format does not say otherwise. All must be UTF-8. A\n"      \
    "document is what the tokenizer's template makes of the text, and the end token unless the\n" \
    "template ends with it. Names of special tokens in a text are these tokens, as in the\n"      \
    "library tokenizers, and are counted; with bytes they are only text.\n"                       \
    "mpirun -np N pretrain-data tokenize ... shares the work with N ranks. A long text is "       \
    "shared\n"                                                                                    \
    "too, where the tokenizer has places at which it surely begins a new token (spaces between\n" \
    "letters; ends of lines); else one thread takes it, in memory.\n"                             \
    "A run that was ended goes on when the same command is given again."
#define DATA_TRAIN_ABOUT                                                                          \
    "Train a byte-level BPE vocabulary and write it as a tokenizer.json.\n" DATA_INPUTS_ABOUT     \
    "Merges and ids are those of the library tokenizers (BpeTrainer, alphabet of all bytes) on\n" \
    "the same files. As there, a text counts line by line, so no token goes over the end of a\n"  \
    "line; a document of a jsonl file counts as a whole."

extern const struct option_row data_tokenize_rows[12], data_train_rows[8];
extern const struct option_row data_stated_rows[2], data_peek_rows[5], data_convert_rows[5],
    data_merge_rows[4], data_stat_rows[3];
enum status data_run_tokenize(const struct options *o, struct err *e) LOCAL;
enum status data_run_train(const struct options *o, struct err *e) LOCAL;
enum status data_run_info(const struct options *o, struct err *e) LOCAL;
enum status data_run_peek(const struct options *o, struct err *e) LOCAL;
enum status data_run_check(const struct options *o, struct err *e) LOCAL;
enum status data_run_convert(const struct options *o, struct err *e) LOCAL;
enum status data_run_merge(const struct options *o, struct err *e) LOCAL;
enum status data_run_stat(const struct options *o, struct err *e) LOCAL;
#endif
