#include "convert/convert_tokens.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "convert/progress.h"
#include "convert/token_stream.h"

enum { PIECE = 1 << 16 }; /* tokens at a time */

struct convert {
    const struct convert_tokens *a;
    struct corpus in;
    struct tokens_writer *ours;
    struct token_stream *theirs;
    struct progress progress;
    int64_t done;
    int wide;     /* ids need more than 16 bits */
    int32_t *ids; /* [PIECE] */
};

static enum status add(struct convert *c, const int32_t *ids, int64_t n, struct err *e)
{
    return c->ours ? tokens_writer_add(c->ours, (const uint32_t *)ids, n, e)
                   : token_stream_add(c->theirs, ids, n, e);
}

static void document(struct convert *c)
{
    if (c->ours)
        tokens_writer_document(c->ours);
    else
        token_stream_document(c->theirs);
}

/* Tokens that end with a document, or run on: where documents are not listed, behind each eod. */
static enum status add_run(struct convert *c, const struct tokens *t, int64_t n, struct err *e)
{
    enum status st = OK;

    for (int64_t i = 0, run; i < n && st == OK; i += run) {
        run = n - i;
        for (int64_t k = 0; t->ndocuments == 0 && k < run; k++)
            if (c->ids[i + k] == t->eod) {
                run = k + 1;
                break;
            }
        st = add(c, c->ids + i, run, e);
        if (t->ndocuments == 0 && c->ids[i + run - 1] == t->eod)
            document(c);
    }
    return st;
}

static enum status copy_document(struct convert *c, const struct tokens *t, int64_t first,
                                 int64_t end, struct err *e)
{
    enum status st = OK;

    document(c);
    for (int64_t at = first; at < end && st == OK; at += PIECE) {
        int64_t n = min_i64(PIECE, end - at);

        progress_show(&c->progress, c->done);
        st = tokens_read(t, at, n, c->ids, e);
        if (st == OK)
            st = add_run(c, t, n, e);
        c->done += n;
    }
    return st;
}

static enum status copy_file(struct convert *c, const struct tokens *t, struct err *e)
{
    enum status st = OK;

    if (t->ndocuments == 0)
        return copy_document(c, t, 0, t->count, e);
    for (int64_t d = 0; d < t->ndocuments && st == OK; d++) {
        int64_t first = tokens_first(t, d), end = tokens_first(t, d + 1);

        if (first > end || first < 0 || end > t->count)
            return err_set(e, E_FILE,
                           "%s: document %" PRId64 " is listed at tokens %" PRId64 " to %" PRId64
                           "; see `pretrain-data check`",
                           t->path, d, first, end);
        st = copy_document(c, t, first, end, e);
    }
    return st;
}

/* All that carry a tokenizer carry the same. */
static enum status find_tokenizer(const struct corpus *in, const struct tokens **found,
                                  struct err *e)
{
    *found = NULL;
    for (int i = 0; i < in->nfiles; i++) {
        const struct tokens *t = &in->file[i], *f = *found;

        if (!t->tokenizer_json)
            continue;
        if (f && (f->tokenizer_bytes != t->tokenizer_bytes ||
                  memcmp(f->tokenizer_json, t->tokenizer_json, t->tokenizer_bytes)))
            return err_set(e, E_FILE, "%s: its tokenizer is not that of %s; use one for all files",
                           t->path, f->path);
        *found = t;
    }
    return OK;
}

static enum status check_vocabulary(const struct convert *c, int64_t *vocab_size, struct err *e)
{
    const struct convert_tokens *a = c->a;
    int64_t says = c->in.vocab_size;

    *vocab_size = says ? says : a->vocab_size;
    if (says && a->vocab_size && says != a->vocab_size)
        return err_set(e, E_INPUT, "--vocab-size %" PRId64 ": the input says %" PRId64,
                       a->vocab_size, says);
    if (*vocab_size && c->in.eod >= *vocab_size)
        return err_set(e, E_INPUT, "--eod %" PRId64 ": must be below the vocabulary size %" PRId64,
                       c->in.eod, *vocab_size);
    if (*vocab_size == 0 && strcmp(a->to, "pretrain") == 0)
        return err_set(e, E_INPUT, "%s (%s) does not say its vocabulary: give --vocab-size",
                       c->in.file[0].path, c->in.file[0].format);
    return OK;
}

/* Without a vocabulary, what the inputs' type needs. */
static int is_wide(const struct convert *c, int64_t vocab_size)
{
    int wide = 0;

    if (vocab_size)
        return vocab_size > UINT16_MAX + 1;
    for (int i = 0; i < c->in.nfiles; i++)
        wide |= dtype_size(c->in.file[i].dtype) > 2;
    return wide;
}

static enum status open_output(struct convert *c, struct err *e)
{
    const struct tokens *tokenizer;
    int64_t vocab_size;
    enum status st = check_vocabulary(c, &vocab_size, e);

    if (st != OK || (st = find_tokenizer(&c->in, &tokenizer, e)) != OK)
        return st;
    if (vocab_size && (st = corpus_limit(&c->in, vocab_size, 0, e)) != OK)
        return st;
    c->wide = is_wide(c, vocab_size);
    if (strcmp(c->a->to, "pretrain"))
        return token_stream_open(&c->theirs, c->a->out, c->a->to, c->wide, e);
    return tokens_writer_open(&c->ours, c->a->out, vocab_size, c->in.eod,
                              tokenizer ? tokenizer->tokenizer_json : NULL,
                              tokenizer ? tokenizer->tokenizer_bytes : 0, e);
}

static enum status close_output(struct convert *c, struct err *e)
{
    enum status st = c->ours ? tokens_writer_close(c->ours, e) : token_stream_close(c->theirs, e);

    c->ours = NULL;
    c->theirs = NULL;
    return st;
}

static enum status say_result(const struct convert *c, struct err *e)
{
    struct tokens_stated stated = { -1, -1 };
    char tokens[32], documents[32];
    struct tokens t;
    enum status st;

    if (strcmp(c->a->to, "raw") == 0)
        stated.dtype = c->wide ? U32 : U16;
    if ((st = tokens_open_as(&t, c->a->out, &stated, e)) != OK)
        return st;
    say("%s: %s tokens in %s documents, %s, %s", c->a->out, log_thousands(tokens, t.count),
        t.ndocuments ? log_thousands(documents, t.ndocuments) : "unlisted", dtype_name(t.dtype),
        t.format);
    tokens_close(&t);
    return OK;
}

enum status convert_tokens(const struct convert_tokens *a, struct err *e)
{
    struct convert c = { .a = a };
    enum status st = OK;

    for (int i = 0; i < a->n && st == OK; i++)
        st = output_check(a->out, a->in[i], e);
    if (st != OK || (st = corpus_open(&c.in, a->in, a->n, 1, &a->stated, e)) != OK)
        return st;
    c.ids = mem_take(PIECE * sizeof *c.ids);
    st = open_output(&c, e);
    c.progress = progress_start("tokens", c.in.count);
    for (int i = 0; i < c.in.nfiles && st == OK; i++)
        st = copy_file(&c, &c.in.file[i], e);
    progress_end(&c.progress);
    if (st == OK)
        st = close_output(&c, e);
    if (st == OK)
        st = say_result(&c, e);
    tokens_writer_cancel(c.ours);
    token_stream_cancel(c.theirs);
    mem_give(c.ids);
    corpus_close(&c.in);
    return st;
}
