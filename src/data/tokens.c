#include "data/tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "data/foreign.h"
#include "data/tokens_file.h"
#include "data/tokens_foreign.h"
#include "data/tokens_hdf5.h"

enum {
    PIECE = 1 << 16,     /* tokens, or starts of documents, looked at in one go */
    SAMPLE_BLOCKS = 256, /* of tokens that tokens_sample reads */
    SAMPLE_TOKENS = 4096 /* of a block */
};

/* ---- documents ---- */

int64_t tokens_first(const struct tokens *t, int64_t d)
{
    BUG_IF(d < 0 || d > t->ndocuments);
    return d == t->ndocuments ? t->count : t->first(t, d);
}

/* Document d begins behind the one before it and inside; in other programs' files it may be empty.
 */
static enum status check_document(const struct tokens *t, int64_t d, struct err *e)
{
    int may_be_empty = t->offsets || t->index.at;
    int64_t at = tokens_first(t, d), before = d ? tokens_first(t, d - 1) : 0;

    if (d ? at > before && at < t->count : at == 0)
        return OK;
    if (may_be_empty && at >= before && at <= t->count && (d || at == 0))
        return OK;
    return err_set(e, E_FILE,
                   "%s: document %lld starts at token %lld, which is not after the one before it "
                   "(%lld) and below %lld; make the file again",
                   t->path, (long long)d, (long long)at, (long long)(d ? before : -1),
                   (long long)t->count);
}

/* All of them, or evenly spaced ones: opening takes bounded time. */
static enum status check_documents(const struct tokens *t, int64_t most, struct err *e)
{
    int64_t n = min_i64(most, t->ndocuments);
    enum status st = OK;

    for (int64_t i = 0; i < n && st == OK; i++)
        st = check_document(t, n == t->ndocuments ? i : i * (t->ndocuments / n), e);
    if (st == OK && n > 0)
        st = check_document(t, t->ndocuments - 1, e);
    return st;
}

int64_t tokens_document(const struct tokens *t, int64_t at)
{
    int64_t low = 0, high = t->ndocuments; /* first(low) <= at < first(high) */

    BUG_IF(t->ndocuments < 1);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (tokens_first(t, middle) <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t tokens_document_start(const struct tokens *t, int64_t at)
{
    return tokens_first(t, tokens_document(t, at));
}

/* ---- open ---- */

static enum status refuse(const struct tokens *t, const void *head, size_t n, int64_t size,
                          struct err *e)
{
    struct foreign what = foreign_look(head, n, size);

    return err_set(e, E_FILE, "%s: not a token file: it is %s; %s", t->path, what.what, what.cure);
}

static enum status open_format(struct tokens *t, struct file *f, const struct tokens_stated *stated,
                               struct err *e)
{
    unsigned char head[FOREIGN_HEAD];
    int64_t size = file_size(f);
    size_t n = (size_t)min_i64(size, FOREIGN_HEAD);
    int known = 0;
    enum status st = file_read_at(f, head, n, 0, e);

    if (st != OK)
        return st;
    if (n >= sizeof TOKENS_MAGIC - 1 && memcmp(head, TOKENS_MAGIC, sizeof TOKENS_MAGIC - 1) == 0)
        return tokens_hdf5_open(t, f, e);
    st = tokens_foreign_open(t, f, head, n, stated, &known, e);
    return st != OK || known ? st : refuse(t, head, n, size, e);
}

/* What was stated must agree with what the file says. */
static enum status check_stated(struct tokens *t, const struct tokens_stated *s, struct err *e)
{
    if (s->dtype >= 0 && s->dtype != (int)t->dtype)
        return err_set(
            e, E_FILE,
            "%s: its tokens (%s) are %s, but data_dtype says %s; leave data_dtype to raw "
            "files",
            t->path, t->format, dtype_name(t->dtype), dtype_name((enum dtype)s->dtype));
    if (s->eod >= 0 && t->vocab_size > 0 && s->eod != t->eod)
        return err_set(
            e, E_FILE,
            "%s: its end-of-document id is %lld, but %lld was stated; leave that to files "
            "that do not say it",
            t->path, (long long)t->eod, (long long)s->eod);
    if (s->eod >= 0)
        t->eod = s->eod;
    return OK;
}

enum status tokens_open_as(struct tokens *t, const char *path, const struct tokens_stated *stated,
                           struct err *e)
{
    static const struct tokens_stated nothing = { -1, -1 };
    struct file f;
    enum status st;

    memset(t, 0, sizeof *t);
    t->eod = -1;
    snprintf(t->path, sizeof t->path, "%s", path);
    if (file_is_dir(path))
        return err_set(e, E_FILE, "%s: a directory, not a token file; name the files in it", path);
    if ((st = file_open(&f, path, FILE_READ, e)) != OK)
        return st;
    stated = stated ? stated : &nothing;
    st = open_format(t, &f, stated, e);
    file_close(&f, NULL);
    if (st == OK && t->count < 1)
        st = err_set(e, E_FILE, "%s: no tokens in it; make the file again", path);
    if (st == OK)
        st = check_stated(t, stated, e);
    if (st == OK)
        st = check_documents(t, PIECE, e);
    t->limit = t->vocab_size ? t->vocab_size : TOKENS_VOCAB_MAX;
    if (st != OK)
        tokens_close(t);
    return st;
}

enum status tokens_open(struct tokens *t, const char *path, struct err *e)
{
    return tokens_open_as(t, path, NULL, e);
}

void tokens_close(struct tokens *t)
{
    file_unmap(t->map.at, t->map.bytes);
    file_unmap(t->index.at, t->index.bytes);
    t->map = t->index = (struct tokens_map){ 0 };
    t->data = NULL;
    t->ndocuments = 0;
    t->tokenizer_json = NULL;
}

/* ---- tokens ---- */

void tokens_limit(struct tokens *t, int64_t vocab_size)
{
    t->limit = min_i64(t->vocab_size ? t->vocab_size : TOKENS_VOCAB_MAX, vocab_size);
}

/* Elements may be unaligned, hence the copies; compilers make plain loads of them. */
static inline int64_t token_at(const struct tokens *t, int64_t i)
{
    const char *p = t->data;
    uint16_t u16;
    uint32_t u32;
    int32_t i32;
    int64_t i64;

    switch (t->dtype) {
    case U8:
        return (unsigned char)p[i];
    case U16:
        memcpy(&u16, p + i * 2, sizeof u16);
        return u16;
    case U32:
        memcpy(&u32, p + i * 4, sizeof u32);
        return u32;
    case I32:
        memcpy(&i32, p + i * 4, sizeof i32);
        return i32;
    default:
        memcpy(&i64, p + i * 8, sizeof i64);
        return i64;
    }
}

static enum status bad_token(const struct tokens *t, int64_t at, struct err *e)
{
    int64_t id = token_at(t, at);

    if (t->vocab_size && (id < 0 || id >= t->vocab_size))
        return err_set(
            e, E_FILE,
            "%s: token %lld at position %lld is not below the vocabulary size %lld; the file is "
            "damaged: see `pretrain-data check`",
            t->path, (long long)id, (long long)at, (long long)t->vocab_size);
    if (t->vocab_size)
        return err_set(
            e, E_FILE,
            "%s: token %lld has id %lld, but model.vocab_size is %lld: set vocab_size to "
            "at least %lld, or 0 for the data's",
            t->path, (long long)at, (long long)id, (long long)t->limit, (long long)t->vocab_size);
    if (id < 0 || id >= TOKENS_VOCAB_MAX)
        return err_set(e, E_FILE,
                       "%s: token %lld is %lld, which is no id: is %s (%s) what the file holds?",
                       t->path, (long long)at, (long long)id, dtype_name(t->dtype), t->format);
    return err_set(e, E_FILE,
                   "%s: token %lld has id %lld, but model.vocab_size is %lld: set vocab_size to at "
                   "least %lld, if %s (%s) is what the file holds",
                   t->path, (long long)at, (long long)id, (long long)t->limit, (long long)(id + 1),
                   dtype_name(t->dtype), t->format);
}

enum status tokens_read(const struct tokens *t, int64_t first, int64_t n, int32_t *ids,
                        struct err *e)
{
    BUG_IF(first < 0 || n < 0 || first > t->count - n);
    for (int64_t i = 0; i < n; i++) {
        int64_t id = token_at(t, first + i);

        if (id < 0 || id >= t->limit)
            return bad_token(t, first + i, e);
        ids[i] = (int32_t)id;
    }
    return OK;
}

void tokens_will_need(const struct tokens *t, int64_t first, int64_t n)
{
    int64_t element = (int64_t)dtype_size(t->dtype);

    file_will_need((const char *)t->data + first * element, (size_t)(n * element));
}

enum status tokens_sample(const struct tokens *t, struct err *e)
{
    int64_t blocks = ceil_div(t->count, SAMPLE_TOKENS), shown = min_i64(blocks, SAMPLE_BLOCKS);
    int32_t *ids = mem_take(SAMPLE_TOKENS * sizeof *ids);
    enum status st = OK;

    for (int64_t i = 0; i < shown && st == OK; i++) {
        int64_t at = (i == shown - 1 ? blocks - 1 : i * (blocks / shown)) * SAMPLE_TOKENS;

        st = tokens_read(t, at, min_i64(SAMPLE_TOKENS, t->count - at), ids, e);
    }
    mem_give(ids);
    return st;
}

enum status tokens_check(const struct tokens *t, int64_t *largest, struct err *e)
{
    size_t bytes = (size_t)t->count * dtype_size(t->dtype);
    int32_t *ids = mem_take(PIECE * sizeof *ids);
    enum status st = check_documents(t, t->ndocuments, e);

    *largest = 0;
    for (int64_t at = 0; at < t->count && st == OK; at += PIECE) {
        int64_t n = min_i64(PIECE, t->count - at);

        st = tokens_read(t, at, n, ids, e);
        for (int64_t i = 0; i < n && st == OK; i++)
            *largest = max_i64(*largest, ids[i]);
    }
    mem_give(ids);
    if (st == OK && t->vocab_size && strcmp(hash_bytes(t->data, bytes).s, t->hash))
        st = err_set(
            e, E_FILE,
            "%s: the hash of the tokens is not the one in the file: it is damaged; copy or make it "
            "again",
            t->path);
    return st;
}
