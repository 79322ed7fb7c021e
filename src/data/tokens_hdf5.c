#include "data/tokens_hdf5.h"

#include <string.h>

#include "data/tokens_file.h"
#include "store/h5.h"

/* Where the three arrays lie, as the header says. */
struct places {
    int64_t tokens, documents, tokenizer;
};

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

static int64_t first_of(const struct tokens *t, int64_t d)
{
    int64_t first;

    memcpy(&first, t->list + d * 8, sizeof first); /* a copy by other tools need not be aligned */
    return first;
}

enum status tokens_hdf5_open(struct tokens *t, struct file *f, struct err *e)
{
    struct places at = { 0 };
    struct h5 *h = NULL;
    enum status st = h5_open(&h, t->path, e);

    if (st != OK)
        err_prefix(e, "not a good token file (truncated? copy or make it again)");
    else
        st = read_header(t, h, file_size(f), &at, e);
    h5_close(h, NULL);
    if (st != OK || (st = file_map(f, &t->map.at, &t->map.bytes, e)) != OK)
        return st;
    if (t->ndocuments < 1)
        return err_set(e, E_FILE, "%s: no tokens in it; make the file again", t->path);
    t->format = "token file";
    t->data = (const char *)t->map.at + at.tokens;
    t->list = (const char *)t->map.at + at.documents;
    t->first = first_of;
    t->tokenizer_json = t->tokenizer_bytes ? (const char *)t->map.at + at.tokenizer : NULL;
    return OK;
}
