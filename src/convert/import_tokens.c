#include "convert/import_tokens.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "convert/progress.h"
#include "data/foreign.h"
#include "data/tokens.h"

enum { PIECE = 1 << 17 }; /* tokens at a time */

struct import {
    const struct import_tokens *a;
    struct file raw;
    int64_t ntokens;
    struct tokens_writer *writer;
    int64_t *starts;       /* [nstarts], NULL: by eod */
    int64_t nstarts, next; /* next: first start that was not passed yet */
    void *stored;          /* [PIECE] of the file's type */
    uint32_t *ids;         /* [PIECE] */
};

static int64_t value_at(const void *p, enum dtype t, int64_t i)
{
    switch (t) {
    case U16:
        return ((const uint16_t *)p)[i];
    case U32:
        return ((const uint32_t *)p)[i];
    case I32:
        return ((const int32_t *)p)[i];
    default:
        return ((const int64_t *)p)[i];
    }
}

/* Formats that we know by their first bytes are never raw streams. A stream may look like text by
 * chance. */
static enum status check_head(struct file *f, int64_t size, struct err *e)
{
    char head[FOREIGN_HEAD];
    size_t n = (size_t)min_i64(size, FOREIGN_HEAD);
    enum status st = file_read_at(f, head, n, 0, e);
    struct foreign what;

    if (st != OK)
        return st;
    what = foreign_look(head, n, size);
    if (what.is_raw)
        return OK;
    if (what.is_text) {
        warn("%s looks like text; if it is, make a token file with `pretrain-data tokenize`",
             f->path);
        return OK;
    }
    return err_set(e, E_FILE, "%s: not a raw stream of tokens: it is %s; %s", f->path, what.what,
                   what.cure);
}

static enum status open_raw(struct import *im, struct err *e)
{
    int64_t size, element = (int64_t)dtype_size(im->a->dtype);
    enum status st = file_open(&im->raw, im->a->raw, FILE_READ, e);

    if (st != OK)
        return st;
    size = file_size(&im->raw);
    if ((st = check_head(&im->raw, size, e)) != OK)
        return st;
    if (size % element)
        return err_set(e, E_FILE,
                       "%s: %lld bytes are not a whole number of %s tokens; is --dtype right, or "
                       "the file cut?",
                       im->raw.path, (long long)size, dtype_name(im->a->dtype));
    im->ntokens = size / element;
    return OK;
}

static enum status check_starts(const struct import *im, struct err *e)
{
    const int64_t *s = im->starts;
    const char *path = im->a->documents;

    if (im->nstarts < 1 || s[0] != 0)
        return err_set(e, E_FILE, "%s: the first document must start at 0 (int64, little-endian)",
                       path);
    for (int64_t d = 1; d < im->nstarts; d++)
        if (s[d] <= s[d - 1])
            return err_set(e, E_FILE,
                           "%s: document %lld starts at %lld, not after the one before it (%lld)",
                           path, (long long)d, (long long)s[d], (long long)s[d - 1]);
    if (s[im->nstarts - 1] >= im->ntokens)
        return err_set(e, E_FILE, "%s: the last document starts at %lld, but %s has %lld tokens",
                       path, (long long)s[im->nstarts - 1], im->a->raw, (long long)im->ntokens);
    return OK;
}

static enum status read_starts(struct import *im, struct err *e)
{
    struct file f;
    int64_t size;
    enum status st;

    if (!im->a->documents)
        return OK;
    if ((st = file_open(&f, im->a->documents, FILE_READ, e)) != OK)
        return st;
    size = file_size(&f);
    if (size % (int64_t)sizeof(int64_t) || size / (int64_t)sizeof(int64_t) > im->ntokens) {
        file_close(&f, NULL);
        return err_set(e, E_FILE,
                       "%s: %lld bytes are not a list of int64 starts of at most %lld documents",
                       im->a->documents, (long long)size, (long long)im->ntokens);
    }
    im->nstarts = size / (int64_t)sizeof(int64_t);
    im->starts = mem_take((size_t)size);
    st = file_read_at(&f, im->starts, (size_t)size, 0, e);
    file_close(&f, NULL);
    return st == OK ? check_starts(im, e) : st;
}

static enum status convert(struct import *im, int64_t first, int64_t n, struct err *e)
{
    const struct import_tokens *a = im->a;

    for (int64_t i = 0; i < n; i++) {
        int64_t id = value_at(im->stored, a->dtype, i);

        if (id < 0 || id >= a->vocab_size)
            return err_set(
                e, E_FILE,
                "%s: token %lld at position %lld is not in 0 .. %lld; is --dtype %s right, or "
                "--vocab-size too small?",
                a->raw, (long long)id, (long long)(first + i), (long long)(a->vocab_size - 1),
                dtype_name(a->dtype));
        im->ids[i] = (uint32_t)id;
    }
    return OK;
}

/* How many of the n ids go before the next document starts. */
static int64_t run_length(const struct import *im, int64_t at, const uint32_t *ids, int64_t n)
{
    if (im->starts)
        return im->next < im->nstarts ? min_i64(n, im->starts[im->next] - at) : n;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == im->a->eod)
            return i + 1;
    return n;
}

/* The piece of n ids that begins at token `first`, cut at documents. */
static enum status add(struct import *im, int64_t first, int64_t n, struct err *e)
{
    enum status st = OK;

    for (int64_t i = 0, run; i < n && st == OK; i += run) {
        if (im->starts && im->next < im->nstarts && im->starts[im->next] == first + i) {
            im->next++;
            tokens_writer_document(im->writer);
        }
        run = run_length(im, first + i, im->ids + i, n - i);
        if (st == OK)
            st = tokens_writer_add(im->writer, im->ids + i, run, e);
        if (st == OK && !im->starts && im->ids[i + run - 1] == im->a->eod)
            tokens_writer_document(im->writer);
    }
    return st;
}

static enum status copy(struct import *im, struct err *e)
{
    int64_t element = (int64_t)dtype_size(im->a->dtype);
    struct progress p = progress_start("tokens", im->ntokens);
    enum status st = OK;

    for (int64_t at = 0; at < im->ntokens && st == OK; at += PIECE) {
        int64_t n = min_i64(PIECE, im->ntokens - at);

        progress_show(&p, at);
        st = file_read_at(&im->raw, im->stored, (size_t)(n * element), at * element, e);
        if (st == OK)
            st = convert(im, at, n, e);
        if (st == OK)
            st = add(im, at, n, e);
    }
    progress_end(&p);
    return st;
}

static enum status check_arguments(const struct import_tokens *a, struct err *e)
{
    if (a->eod >= a->vocab_size)
        return err_set(e, E_INPUT, "--eod %lld: must be below --vocab-size %lld, or -1 for none",
                       (long long)a->eod, (long long)a->vocab_size);
    if (a->eod < 0 && !a->documents)
        warn("without --eod and --documents, all of %s is one document", a->raw);
    return output_check(a->out, a->raw, e);
}

enum status import_tokens(const struct import_tokens *a, struct err *e)
{
    struct import im = { .a = a, .raw.fd = -1 };
    enum status st = check_arguments(a, e);

    im.stored = mem_take(PIECE * sizeof(int64_t));
    im.ids = mem_take(PIECE * sizeof *im.ids);
    if (st == OK && (st = open_raw(&im, e)) == OK && (st = read_starts(&im, e)) == OK)
        st = tokens_writer_open(&im.writer, a->out, a->vocab_size, a->eod, NULL, 0, e);
    if (st == OK)
        st = copy(&im, e);
    if (st == OK) {
        st = tokens_writer_close(im.writer, e);
        im.writer = NULL;
    }
    tokens_writer_cancel(im.writer);
    file_close(&im.raw, NULL);
    mem_give(im.starts);
    mem_give(im.stored);
    mem_give(im.ids);
    return st == OK ? output_say(a->out, e) : st;
}
