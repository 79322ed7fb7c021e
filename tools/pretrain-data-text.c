/* pretrain-data: the commands that read texts. */
#include <string.h>

#include "base/arena.h"
#include "convert/tokenize.h"
#include "convert/train_tokenizer.h"
#include "parallel/comm_mpi.h"
#include "tools/pretrain-data.h"

enum { VOCAB_MAX = 1 << 24, THREADS_MAX = 1024 };

#define FORMAT_ROW                                                                           \
    {                                                                                        \
        "format", 0, "FORMAT", OPTION_OPTIONAL, INPUT_FORMATS,                               \
            "of all inputs: text (a file is a document), jsonl, lines (a line is) [by name]" \
    }
#define FIELD_ROW                                            \
    {                                                        \
        "field", 0, "NAME", OPTION_OPTIONAL, NULL,           \
            "the text in the objects of a jsonl file [text]" \
    }

const struct option_row data_tokenize_rows[12] = {
    { "tokenizer", 0, "FILE|bytes", OPTION_REQUIRED, NULL,
      "a tokenizer.json, a SentencePiece .model, or bytes: id = byte, 256 = <|endoftext|>" },
    { "eod", 0, "TOKEN", OPTION_OPTIONAL, NULL,
      "the token that ends a document [what the tokenizer's template ends with, or a usual name]" },
    { "specials-as-text", 0, NULL, OPTION_OPTIONAL, NULL,
      "names of special tokens in a text are only text" },
    { "output", 'o', "OUT.h5", OPTION_REQUIRED, NULL, "the token file to write" },
    FORMAT_ROW,
    FIELD_ROW,
    { "invalid-utf8", 0, "HOW", OPTION_OPTIONAL, "refuse|replace",
      "refuse, or replace: put U+FFFD for what is not UTF-8, and count [refuse]" },
    { "drop-duplicates", 0, NULL, OPTION_OPTIONAL, NULL,
      "of documents with the same text keep the first; takes 18 to 23 bytes a document" },
    { "validation-fraction", 0, "F", OPTION_OPTIONAL, NULL,
      "hold out document d (from 0, of those kept) if floor((d+1)F) > floor(dF)" },
    { "validation-output", 0, "VAL.h5", OPTION_OPTIONAL, NULL, "where the held-out documents go" },
    { "threads", 0, "N", OPTION_OPTIONAL, NULL,
      "of each rank [its share of the cores]; the files are the same for any" },
    { "journal-seconds", 0, "S", OPTION_OPTIONAL, NULL,
      "how often to note how far it came, in OUT.h5.journal [5]" },
};

const struct option_row data_train_rows[8] = {
    { "vocab-size", 0, "V", OPTION_REQUIRED, NULL, "all tokens: special ones, 256 bytes, merges" },
    { "output", 'o', "TOKENIZER.json", OPTION_REQUIRED, NULL, "the file to write" },
    { "pattern", 0, "NAME", OPTION_OPTIONAL, "gpt2|llama3|qwen2",
      "what cuts a text into pieces: gpt2, llama3 or qwen2 (with its normal form, NFC) [gpt2]" },
    { "special", 0, "TOKEN", OPTION_REPEATED, NULL,
      "a special token, in the order of their ids from 0 [<|endoftext|>]" },
    { "min-frequency", 0, "N", OPTION_OPTIONAL, NULL, "merge no pair that occurs less often [0]" },
    FIELD_ROW,
    FORMAT_ROW,
    { "threads", 0, "N", OPTION_OPTIONAL, NULL, "[all cores]; the result is the same for any" },
};

/* Its errors are said by rank 0, if there are ranks. */
static enum status tokenize_on_ranks(const struct tokenize *a, struct err *e)
{
    struct err *said;
    struct comm *world;
    enum status st;

    if (!comm_mpi_launched())
        return tokenize(NULL, a, e);
    said = mem_take(sizeof *said);
    world = comm_mpi_start(NULL, NULL);
    st = tokenize(world, a, said);
    comm_mpi_end(world);
    mem_give(said);
    return st;
}

enum status data_run_tokenize(const struct options *o, struct err *e)
{
    const char *invalid = options_text(o, "invalid-utf8");
    struct tokenize a = {
        .tokenizer = options_text(o, "tokenizer"),
        .input = options_operands(o),
        .ninputs = options_noperands(o),
        .format = input_format_of(options_text(o, "format")),
        .field = options_given(o, "field") ? options_text(o, "field") : "text",
        .replace = invalid && strcmp(invalid, "replace") == 0,
        .drop_duplicates = options_given(o, "drop-duplicates"),
        .out = options_text(o, "output"),
        .validation = options_text(o, "validation-output"),
        .eod = options_text(o, "eod"),
        .specials_as_text = options_given(o, "specials-as-text"),
        .journal_seconds = 5,
    };
    enum status st = options_f64(o, "validation-fraction", 0, 1, &a.fraction, e);

    if (st == OK)
        st = options_f64(o, "journal-seconds", 0, 1e6, &a.journal_seconds, e);
    if (st == OK)
        st = options_i64(o, "threads", 1, THREADS_MAX, &a.threads, e);
    if (st == OK && options_given(o, "validation-fraction") != (a.validation != NULL))
        st = err_set(e, E_INPUT,
                     "--validation-fraction and --validation-output go together: "
                     "give both or neither");
    if (st == OK && a.validation && (a.fraction == 0 || a.fraction == 1))
        st = err_set(e, E_INPUT,
                     "--validation-fraction %g leaves no document for %s: give a number above 0 "
                     "and below 1",
                     a.fraction, a.fraction == 0 ? "validation" : "training");
    return st == OK ? tokenize_on_ranks(&a, e) : st;
}

enum status data_run_train(const struct options *o, struct err *e)
{
    static const char *const end[] = { "<|endoftext|>" };
    int n = options_given(o, "special");
    const char **special = mem_take((size_t)n * sizeof *special);
    struct train_tokenizer a = {
        .input = options_operands(o),
        .ninputs = options_noperands(o),
        .format = input_format_of(options_text(o, "format")),
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
