#include "tools/pretrain-data.h"

#include "convert/convert_tokens.h"
#include "convert/show_tokens.h"
#include "convert/stat_tokens.h"

enum { COUNT_MAX = 0x7fffffff };

/* Of files that do not say it themselves. */
#define DTYPE_ROW                                                         \
    {                                                                     \
        "dtype", 0, "TYPE", OPTION_OPTIONAL, "uint16|uint32|int32|int64", \
            "of the tokens in a raw file: uint16, uint32, int32 or int64" \
    }
#define EOD_ROW                                                        \
    {                                                                  \
        "eod", 0, "ID", OPTION_OPTIONAL, NULL,                         \
            "the end-of-document token of a file that does not say it" \
    }
#define VOCAB_ROW                                                         \
    {                                                                     \
        "vocab-size", 0, "V", OPTION_OPTIONAL, NULL,                      \
            "tokens are 0 .. V-1; needed where the input does not say it" \
    }

const struct option_row data_stated_rows[2] = { DTYPE_ROW, EOD_ROW };

const struct option_row data_peek_rows[5] = {
    DTYPE_ROW,
    EOD_ROW,
    { "first", 0, "D", OPTION_OPTIONAL, NULL, "the first document to show [0]" },
    { "documents", 0, "N", OPTION_OPTIONAL, NULL, "how many documents [3]" },
    { "tokens", 0, "N", OPTION_OPTIONAL, NULL, "at most so many tokens of each [200]" },
};

const struct option_row data_convert_rows[5] = {
    { "to", 0, "FORMAT", OPTION_REQUIRED, CONVERT_TARGETS,
      "pretrain (ours), megatron (OUT.bin, and OUT.idx beside it), datatrove (OUT, OUT.index, "
      "OUT.metadata), llm.c or raw" },
    { "output", 'o', "OUT", OPTION_REQUIRED, NULL, "the token file to write" },
    DTYPE_ROW,
    EOD_ROW,
    VOCAB_ROW,
};

const struct option_row data_merge_rows[4] = {
    { "output", 'o', "OUT.h5", OPTION_REQUIRED, NULL, "the token file to write" },
    DTYPE_ROW,
    EOD_ROW,
    VOCAB_ROW,
};

const struct option_row data_stat_rows[3] = {
    DTYPE_ROW,
    EOD_ROW,
    { "svg", 0, "OUT.svg", OPTION_OPTIONAL, NULL, "a plot of both" },
};

static enum status stated_of(const struct options *o, struct tokens_stated *s, struct err *e)
{
    *s = (struct tokens_stated){ -1, -1 };
    if (options_given(o, "dtype"))
        s->dtype = dtype_from_name(options_text(o, "dtype"));
    return options_i64(o, "eod", 0, COUNT_MAX, &s->eod, e);
}

enum status data_run_info(const struct options *o, struct err *e)
{
    struct tokens_stated s;
    enum status st = stated_of(o, &s, e);

    return st == OK ? show_tokens_info(options_operands(o)[0], &s, e) : st;
}

enum status data_run_peek(const struct options *o, struct err *e)
{
    int64_t first = 0, documents = 3, tokens = 200;
    struct tokens_stated s;
    enum status st;

    if ((st = stated_of(o, &s, e)) != OK ||
        (st = options_i64(o, "first", 0, INT64_MAX, &first, e)) != OK ||
        (st = options_i64(o, "documents", 1, COUNT_MAX, &documents, e)) != OK ||
        (st = options_i64(o, "tokens", 1, COUNT_MAX, &tokens, e)) != OK)
        return st;
    return show_tokens_peek(options_operands(o)[0], &s, first, documents, tokens, e);
}

enum status data_run_check(const struct options *o, struct err *e)
{
    struct tokens_stated s;
    enum status st = stated_of(o, &s, e);

    return st == OK ? show_tokens_check(options_operands(o)[0], &s, e) : st;
}

/* to NULL: what --to says. */
static enum status convert(const struct options *o, const char *to, struct err *e)
{
    struct convert_tokens a = {
        .in = options_operands(o),
        .n = options_noperands(o),
        .to = to ? to : options_text(o, "to"),
        .out = options_text(o, "output"),
    };
    enum status st = stated_of(o, &a.stated, e);

    if (st == OK)
        st = options_i64(o, "vocab-size", 1, COUNT_MAX, &a.vocab_size, e);
    return st == OK ? convert_tokens(&a, e) : st;
}

enum status data_run_convert(const struct options *o, struct err *e)
{
    return convert(o, NULL, e);
}

enum status data_run_merge(const struct options *o, struct err *e)
{
    return convert(o, "pretrain", e);
}

enum status data_run_stat(const struct options *o, struct err *e)
{
    struct tokens_stated s;
    enum status st = stated_of(o, &s, e);

    return st == OK ? stat_tokens(options_operands(o)[0], &s, options_text(o, "svg"), e) : st;
}
