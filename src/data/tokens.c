#include "data/tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "data/foreign.h"
#include "data/tokens_file.h"
#include "store/h5.h"

/* Where the three arrays lie, as the header says. */
struct places {
    int64_t tokens, documents, tokenizer;
};

/* Is it a token file at all? */
static enum status look(struct file *f, int64_t size, struct err *e)
{
    unsigned char head[FOREIGN_HEAD];
    size_t n = (size_t)min_i64(size, FOREIGN_HEAD);
    struct foreign what;
    enum status st = file_read_at(f, head, n, 0, e);

    if (st != OK)
        return st;
    if (n >= sizeof TOKENS_MAGIC - 1 && memcmp(head, TOKENS_MAGIC, sizeof TOKENS_MAGIC - 1) == 0)
        return OK;
    what = foreign_look(head, n, size);
    return err_set(e, E_FILE, "%s: not a token file: it is %s; %s", f->path, what.what, what.cure);
}

/* One of the arrays must be of rank 1, of the type expected and inside the file. */
static enum status find(struct h5 *h, const char *path, const char *name, int64_t file_bytes,
                        enum dtype *t, int64_t *count, int64_t *offset, struct err *e)
{
    int64_t shape[BOX_MAX];
    int nd;
    enum status st = h5_find(h, name, t, &nd, shape, offset, e);

    if (st != OK)
        return st;
    if (nd != 1 || shape[0] < 0)
        return err_set(e, E_FILE, "%s: %s is not a list; make the file again", path, name);
    *count = shape[0];
    if (*offset < 0 || *offset > file_bytes ||
        *count > (file_bytes - *offset) / (int64_t)dtype_size(*t))
        return err_set(e, E_FILE,
                       "%s: the file is truncated: %s ends at byte %.0f, the file has %lld; copy "
                       "or make it again",
                       path, name, (double)*offset + (double)*count * (double)dtype_size(*t),
                       (long long)file_bytes);
    return OK;
}

static enum status read_attributes(struct tokens *t, struct h5 *h, struct err *e)
{
    char format[64];
    int64_t version, ntokens, ndocuments;
    enum status st;

    if (h5_get_text(h, "/", "format", format, sizeof format, NULL) != OK ||
        strcmp(format, TOKENS_FORMAT))
        return err_set(e, E_FILE,
                       "%s: an HDF5 file, but not a token file: it has no attribute format = "
                       "\"%s\"; make one with "
                       "`pretrain-data`",
                       t->path, TOKENS_FORMAT);
    if ((st = h5_get_i64(h, "/", "format_version", &version, 1, e)) != OK)
        return st;
    if (version != TOKENS_VERSION)
        return err_set(e, E_FILE, "%s: format version %lld; this program reads version %d", t->path,
                       (long long)version, TOKENS_VERSION);
    if ((st = h5_get_i64(h, "/", "vocab_size", &t->vocab_size, 1, e)) != OK ||
        (st = h5_get_i64(h, "/", "end_of_document", &t->eod, 1, e)) != OK ||
        (st = h5_get_i64(h, "/", "ntokens", &ntokens, 1, e)) != OK ||
        (st = h5_get_i64(h, "/", "ndocuments", &ndocuments, 1, e)) != OK ||
        (st = h5_get_text(h, "/", "tokens_xxh3", t->hash, sizeof t->hash, e)) != OK)
        return st;
    if (ntokens != t->count || ndocuments != t->ndocuments)
        return err_set(
            e, E_FILE,
            "%s: its attributes say %lld tokens in %lld documents, its arrays %lld in %lld; "
            "make the file again",
            t->path, (long long)ntokens, (long long)ndocuments, (long long)t->count,
            (long long)t->ndocuments);
    if (t->vocab_size < 1 || t->vocab_size > TOKENS_VOCAB_MAX || t->eod < -1 ||
        t->eod >= t->vocab_size)
        return err_set(
            e, E_FILE,
            "%s: vocabulary size %lld with end-of-document id %lld makes no sense; make the file "
            "again",
            t->path, (long long)t->vocab_size, (long long)t->eod);
    return OK;
}

static enum status read_header(struct tokens *t, struct h5 *h, int64_t file_bytes,
                               struct places *at, struct err *e)
{
    enum dtype type;
    int64_t bytes = 0;
    enum status st;

    if (!h5_has(h, "/tokens"))
        return err_set(
            e, E_FILE,
            "%s: an HDF5 file, but not a token file: there is no dataset /tokens; make one with "
            "`pretrain-data`",
            t->path);
    if ((st = find(h, t->path, "/tokens", file_bytes, &t->dtype, &t->count, &at->tokens, e)) != OK)
        return st;
    if (t->dtype != U16 && t->dtype != U32)
        return err_set(
            e, E_FILE,
            "%s: /tokens is %s, not uint16 or uint32; make it again with `pretrain-data`", t->path,
            dtype_name(t->dtype));
    if ((st = find(h, t->path, "/documents", file_bytes, &type, &t->ndocuments, &at->documents,
                   e)) != OK)
        return st;
    if (type != I64)
        return err_set(e, E_FILE, "%s: /documents is %s, not int64", t->path, dtype_name(type));
    if (h5_has(h, "/tokenizer_json")) {
        if ((st = find(h, t->path, "/tokenizer_json", file_bytes, &type, &bytes, &at->tokenizer,
                       e)) != OK)
            return st;
        if (type != U8)
            return err_set(e, E_FILE, "%s: /tokenizer_json is %s, not uint8", t->path,
                           dtype_name(type));
    }
    t->tokenizer_bytes = (size_t)bytes;
    return read_attributes(t, h, e);
}

/* Documents begin at 0, ascend and lie inside. */
static enum status check_documents(const struct tokens *t, struct err *e)
{
    int64_t before = -1;

    if (t->count < 1 || t->ndocuments < 1)
        return err_set(e, E_FILE, "%s: no tokens in it; make the file again", t->path);
    for (int64_t d = 0; d < t->ndocuments; d++) {
        int64_t at = t->documents[d];

        if (at <= before || at >= t->count || (d == 0 && at != 0))
            return err_set(
                e, E_FILE,
                "%s: document %lld starts at token %lld, which is not after the one before it "
                "(%lld) and below %lld; make the file again",
                t->path, (long long)d, (long long)at, (long long)before, (long long)t->count);
        before = at;
    }
    return OK;
}

static enum status map(struct tokens *t, struct file *f, const struct places *at, struct err *e)
{
    const void *base;
    enum status st = file_map(f, &base, &t->map_bytes, e);
    const char *p = base;

    if (st != OK)
        return st;
    t->map = (void *)(uintptr_t)base;
    t->data = p + at->tokens;
    if (at->documents % (int64_t)sizeof(int64_t) == 0) {
        t->documents = (const void *)(p + at->documents);
    } else { /* a copy by other tools need not be aligned */
        t->owned = mem_take((size_t)t->ndocuments * sizeof(int64_t));
        memcpy(t->owned, p + at->documents, (size_t)t->ndocuments * sizeof(int64_t));
        t->documents = t->owned;
    }
    t->tokenizer_json = t->tokenizer_bytes ? p + at->tokenizer : NULL;
    return check_documents(t, e);
}

enum status tokens_open(struct tokens *t, const char *path, struct err *e)
{
    struct places at = { 0 };
    struct h5 *h = NULL;
    struct file f;
    int64_t bytes;
    enum status st;

    memset(t, 0, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s", path);
    if (file_is_dir(path))
        return err_set(e, E_FILE, "%s: a directory, not a token file; name the files in it", path);
    if ((st = file_open(&f, path, FILE_READ, e)) != OK)
        return st;
    bytes = file_size(&f);
    if ((st = look(&f, bytes, e)) == OK && (st = h5_open(&h, path, e)) != OK)
        err_prefix(e, "not a good token file (truncated? copy or make it again)");
    if (st == OK)
        st = read_header(t, h, bytes, &at, e);
    h5_close(h, NULL);
    if (st == OK)
        st = map(t, &f, &at, e);
    file_close(&f, NULL);
    if (st != OK)
        tokens_close(t);
    return st;
}

void tokens_close(struct tokens *t)
{
    if (t->map)
        file_unmap(t->map, t->map_bytes);
    mem_give(t->owned);
    t->map = t->owned = NULL;
    t->data = t->documents = NULL;
    t->tokenizer_json = NULL;
}

/* Elements may be unaligned, hence the copies; compilers make plain loads of them. */
static inline uint32_t token_at(const struct tokens *t, int64_t i)
{
    uint16_t small;
    uint32_t large;

    if (t->dtype == U16) {
        memcpy(&small, (const char *)t->data + i * 2, sizeof small);
        return small;
    }
    memcpy(&large, (const char *)t->data + i * 4, sizeof large);
    return large;
}

enum status tokens_read(const struct tokens *t, int64_t first, int64_t n, int32_t *ids,
                        struct err *e)
{
    BUG_IF(first < 0 || n < 0 || first > t->count - n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = token_at(t, first + i);

        if (id >= t->vocab_size)
            return err_set(
                e, E_FILE,
                "%s: token %u at position %lld is not below the vocabulary size %lld; the file is "
                "damaged: see `pretrain-data check`",
                t->path, id, (long long)(first + i), (long long)t->vocab_size);
        ids[i] = (int32_t)id;
    }
    return OK;
}

int64_t tokens_document(const struct tokens *t, int64_t at)
{
    int64_t low = 0, high = t->ndocuments; /* documents[low] <= at < documents[high] */

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (t->documents[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t tokens_document_start(const struct tokens *t, int64_t at)
{
    return t->documents[tokens_document(t, at)];
}

enum status tokens_check(const struct tokens *t, struct err *e)
{
    enum { PIECE = 1 << 16 };
    size_t bytes = (size_t)t->count * dtype_size(t->dtype);
    int32_t *ids = mem_take(PIECE * sizeof *ids);
    enum status st = check_documents(t, e);

    for (int64_t at = 0; at < t->count && st == OK; at += PIECE)
        st = tokens_read(t, at, min_i64(PIECE, t->count - at), ids, e);
    mem_give(ids);
    if (st == OK && strcmp(hash_bytes(t->data, bytes).s, t->hash))
        st = err_set(
            e, E_FILE,
            "%s: the hash of the tokens is not the one in the file: it is damaged; copy or make it "
            "again",
            t->path);
    return st;
}
