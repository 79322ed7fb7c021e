/* pretrain-data: makes token files and looks at them. */
#include "tools/pretrain-data.h"
#include "base/arena.h"
#include "base/options.h"
#include "convert/import_tokens.h"
#include "convert/tokenize.h"
#include "convert/train_tokenizer.h"

enum { COUNT_MAX = 0x7fffffff, VOCAB_MAX = 1 << 24, THREADS_MAX = 1024 };

static const struct option_row tokenize_rows[] = {
    { "tokenizer", 0, "FILE|bytes", OPTION_REQUIRED, NULL,
      "a tokenizer.json, a SentencePiece .model, or bytes: id = byte, 256 = <|endoftext|>" },
    { "eod", 0, "TOKEN", OPTION_OPTIONAL, NULL,
      "the token that ends a document [what the tokenizer's template ends with, or a usual name]" },
    { "specials-as-text", 0, NULL, OPTION_OPTIONAL, NULL,
      "names of special tokens in a text are only text" },
    { "output", 'o', "OUT.h5", OPTION_REQUIRED, NULL, "the token file to write" },
    { "field", 0, "NAME", OPTION_OPTIONAL, NULL, "the text in the objects of a jsonl file [text]" },
    { "validation-fraction", 0, "F", OPTION_OPTIONAL, NULL,
      "hold out document d (from 0) if floor((d+1)F) > floor(dF)" },
    { "validation-output", 0, "VAL.h5", OPTION_OPTIONAL, NULL, "where the held-out documents go" },
};

static const struct option_row import_rows[] = {
    { "dtype", 0, "TYPE", OPTION_REQUIRED, "uint16|uint32|int32|int64",
      "of the tokens in RAW: uint16, uint32, int32 or int64" },
    { "vocab-size", 0, "V", OPTION_REQUIRED, NULL, "tokens are 0 .. V-1" },
    { "eod", 0, "ID", OPTION_REQUIRED, NULL, "the end-of-document token; -1: there is none" },
    { "documents", 0, "STARTS.i64", OPTION_OPTIONAL, NULL,
      "int64 starts of the documents [0 and after each ID]" },
    { "output", 'o', "OUT.h5", OPTION_REQUIRED, NULL, "the token file to write" },
};

static const struct option_row train_rows[] = {
    { "vocab-size", 0, "V", OPTION_REQUIRED, NULL, "all tokens: special ones, 256 bytes, merges" },
    { "output", 'o', "TOKENIZER.json", OPTION_REQUIRED, NULL, "the file to write" },
    { "pattern", 0, "NAME", OPTION_OPTIONAL, "gpt2|llama3|qwen2",
      "what cuts a text into pieces: gpt2, llama3 or qwen2 (with its normal form, NFC) [gpt2]" },
    { "special", 0, "TOKEN", OPTION_REPEATED, NULL,
      "a special token, in the order of their ids from 0 [<|endoftext|>]" },
    { "min-frequency", 0, "N", OPTION_OPTIONAL, NULL, "merge no pair that occurs less often [0]" },
    { "field", 0, "NAME", OPTION_OPTIONAL, NULL, "the text in the objects of a jsonl file [text]" },
    { "threads", 0, "N", OPTION_OPTIONAL, NULL, "[all cores]; the result is the same for any" },
};

static enum status run_tokenize(const struct options *o, struct err *e)
{
    struct tokenize a = {
        .tokenizer = options_text(o, "tokenizer"),
        .input = options_operands(o),
        .ninputs = options_noperands(o),
        .field = options_given(o, "field") ? options_text(o, "field") : "text",
        .out = options_text(o, "output"),
        .validation = options_text(o, "validation-output"),
        .eod = options_text(o, "eod"),
        .specials_as_text = options_given(o, "specials-as-text"),
    };
    enum status st = options_f64(o, "validation-fraction", 0, 1, &a.fraction, e);

    if (st == OK && options_given(o, "validation-fraction") != (a.validation != NULL))
        st = err_set(e, E_INPUT,
                     "--validation-fraction and --validation-output go together: "
                     "give both or neither");
    return st == OK ? tokenize(&a, e) : st;
}

static enum status run_train(const struct options *o, struct err *e)
{
    static const char *const end[] = { "<|endoftext|>" };
    int n = options_given(o, "special");
    const char **special = mem_take((size_t)n * sizeof *special);
    struct train_tokenizer a = {
        .input = options_operands(o),
        .ninputs = options_noperands(o),
        .field = options_given(o, "field") ? options_text(o, "field") : "text",
        .pattern = options_given(o, "pattern") ? options_text(o, "pattern") : "gpt2",
        .special = n ? special : end,
        .nspecial = n ? n : 1,
        .out = options_text(o, "output"),
    };
    enum status st = options_i64(o, "vocab-size", 1, VOCAB_MAX, &a.vocab_size, e);

    for (int i = 0; i < n; i++)
        special[i] = options_item(o, "special", i);
    if (st == OK)
        st = options_i64(o, "min-frequency", 0, INT64_MAX, &a.min_frequency, e);
    if (st == OK)
        st = options_i64(o, "threads", 1, THREADS_MAX, &a.threads, e);
    if (st == OK)
        st = train_tokenizer(&a, e);
    mem_give(special);
    return st;
}

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
    { "tokenize", "INPUT...", 1, -1,
      "Make a token file of text.\n"
      "An INPUT that ends in .jsonl, .ndjson or .json holds one JSON object a line, each a "
      "document;\n"
      "any other is a text and one document. All must be UTF-8. A document is what "
      "the\n"
      "tokenizer's template makes of the text, and the end token unless the template ends with "
      "it.\n"
      "Names of special tokens in a text are these tokens, as in the library tokenizers, and are "
      "counted;\n"
      "with bytes they are only text.",
      tokenize_rows, COUNT_OF(tokenize_rows), run_tokenize },
    { "tokenizer train", "INPUT...", 1, -1,
      "Train a byte-level BPE vocabulary and write it as a tokenizer.json.\n"
      "Merges and ids are those of the library tokenizers (BpeTrainer, alphabet of all bytes) on "
      "the same\n"
      "files. As there, a text counts line by line, so no token goes over the end of a line; a "
      "document\n"
      "of a jsonl file (see tokenize) counts as a whole.",
      train_rows, COUNT_OF(train_rows), run_train },
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
