/* pretrain-data: makes token files and looks at them. */
#include "tools/pretrain-data.h"
#include "convert/import_tokens.h"

enum { COUNT_MAX = 0x7fffffff };

static const struct option_row import_rows[] = {
    { "dtype", 0, "TYPE", OPTION_REQUIRED, "uint16|uint32|int32|int64",
      "of the tokens in RAW: uint16, uint32, int32 or int64" },
    { "vocab-size", 0, "V", OPTION_REQUIRED, NULL, "tokens are 0 .. V-1" },
    { "eod", 0, "ID", OPTION_REQUIRED, NULL, "the end-of-document token; -1: there is none" },
    { "documents", 0, "STARTS.i64", OPTION_OPTIONAL, NULL,
      "int64 starts of the documents [0 and after each ID]" },
    { "output", 'o', "OUT.h5", OPTION_REQUIRED, NULL, "the token file to write" },
};

static enum status run_import(const struct options *o, struct err *e)
{
    struct import_tokens a = {
        .raw = options_operands(o)[0],
        .out = options_text(o, "output"),
        .dtype = (enum dtype)dtype_from_name(options_text(o, "dtype")),
        .documents = options_text(o, "documents"),
    };
    enum status st = options_i64(o, "vocab-size", 1, COUNT_MAX, &a.vocab_size, e);

    if (st == OK)
        st = options_i64(o, "eod", -1, COUNT_MAX, &a.eod, e);
    return st == OK ? import_tokens(&a, e) : st;
}

static const struct command commands[] = {
    { "tokenize", "INPUT...", 1, -1, DATA_TOKENIZE_ABOUT, data_tokenize_rows,
      COUNT_OF(data_tokenize_rows), data_run_tokenize },
    { "tokenizer train", "INPUT...", 1, -1, DATA_TRAIN_ABOUT, data_train_rows,
      COUNT_OF(data_train_rows), data_run_train },
    { "import", "RAW", 1, 1,
      "Make a token file of a raw little-endian stream of tokens\n"
      "(nanoGPT and the like; convert takes files with an index). Every token is checked.",
      import_rows, COUNT_OF(import_rows), run_import },
    { "info", "FILE", 1, 1,
      "Say what a token file holds: ours, Megatron's .bin (with its .idx), datatrove's .ds,\n"
      "llm.c's .bin, or a raw file with --dtype.",
      data_stated_rows, COUNT_OF(data_stated_rows), data_run_info },
    { "peek", "FILE", 1, 1,
      "Show the beginning of documents, decoded.\n"
      "Without a tokenizer that this build knows, the ids.",
      data_peek_rows, COUNT_OF(data_peek_rows), data_run_peek },
    { "check", "FILE", 1, 1, "Check every token, the documents and the hash.", data_stated_rows,
      COUNT_OF(data_stated_rows), data_run_check },
    { "convert", "FILE", 1, 1,
      "Write a token file in another format. FILE may have any format that info reads.",
      data_convert_rows, COUNT_OF(data_convert_rows), data_run_convert },
    { "merge", "FILE...", 1, -1,
      "Make one token file of several of one vocabulary, in the order given.", data_merge_rows,
      COUNT_OF(data_merge_rows), data_run_merge },
    { "stat", "FILE", 1, 1, "Say how long documents are and how often tokens come.", data_stat_rows,
      COUNT_OF(data_stat_rows), data_run_stat },
};

int main(int argc, char **argv)
{
    const struct program p = { "pretrain-data",
                               "Make token files (the training data) and look at them.",
                               "pretrain-data " PACKAGE_VERSION, commands, COUNT_OF(commands) };

    return program_main(&p, argc, argv);
}
