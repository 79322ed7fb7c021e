#include "data/tokens.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "data/spool.h"
#include "data/tokens_file.h"
#include "store/h5.h"

/* The tokens go raw behind a reserved head of TOKENS_HEAD bytes. When their number is known, HDF5
 * makes an (all holes) skeleton of the true size beside; its head, which holds all metadata, is
 * copied into ours, or a small skeleton becomes the file. The buffer is larger than the size up to
 * which HDF5 may place the tokens elsewhere, so nothing that might have to move has been written
 * before the place is known. */
enum { BUFFER_BYTES = 1 << 20 };

struct tokens_writer {
    struct file file;
    char path[4096], beside[4096 + 64], skeleton[4096 + 64];
    enum dtype dtype;
    int64_t vocab_size, eod;
    char *tokenizer_json;
    size_t tokenizer_bytes;
    struct hash_stream *hash;
    char *buffer; /* [BUFFER_BYTES] */
    size_t used;
    int64_t written; /* bytes of tokens in the file: whole buffers */
    int64_t count;
    struct spool *documents; /* int64_t each */
    int new_document, finished;
    int small; /* HDF5 places the tokens: the skeleton is filled, a later run may need our file */
};

static int64_t ndocuments(const struct tokens_writer *w)
{
    return spool_bytes(w->documents) / (int64_t)sizeof(int64_t);
}

static void writer_give(struct tokens_writer *w, int remove)
{
    if (w->hash)
        hash_close(w->hash);
    file_close(&w->file, NULL);
    spool_close(w->documents, remove);
    if (remove)
        file_remove(w->beside, NULL);
    file_remove(w->skeleton, NULL);
    mem_give(w->tokenizer_json);
    mem_give(w->buffer);
    mem_give(w);
}

void tokens_writer_cancel(struct tokens_writer *w)
{
    if (w)
        writer_give(w, 1);
}

void tokens_writer_leave(struct tokens_writer *w)
{
    if (w)
        writer_give(w, 0);
}

void tokens_name_beside(char *out, size_t room, const char *path, const char *kind, int own)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash ? (size_t)(slash + 1 - path) : 0, name = strlen(path + dir);
    char pid[32] = "";

    if (own)
        snprintf(pid, sizeof pid, "-%ld", (long)getpid());
    if (name <= 220)
        snprintf(out, room, "%s.%s%s", path, kind, pid);
    else
        snprintf(out, room, "%.*s%s.%s%s", (int)(dir + 150), path, hash_bytes(path, dir + name).s,
                 kind, pid);
}

enum dtype tokens_writer_dtype(int64_t vocab_size)
{
    return vocab_size <= TOKENS_U16_MAX ? U16 : U32;
}

/* What an earlier process wrote, up to the mark. */
static enum status take_up(struct tokens_writer *w, const struct tokens_mark *from, struct err *e)
{
    int64_t bytes = from->tokens * (int64_t)dtype_size(w->dtype);
    int64_t size = bytes ? TOKENS_HEAD + bytes : 0;
    enum status st = OK;

    if (file_size(&w->file) < size)
        return err_set(e, E_FILE, "%s: it is shorter than it was", w->beside);
    w->count = from->tokens;
    w->new_document = from->tokens == 0;
    while (st == OK && bytes > 0) {
        w->used = (size_t)min_i64(BUFFER_BYTES, bytes);
        st = file_read_at(&w->file, w->buffer, w->used, TOKENS_HEAD + w->written, e);
        bytes -= (int64_t)w->used;
        if (bytes == 0)
            break;
        hash_add(w->hash, w->buffer, w->used);
        w->written += (int64_t)w->used;
    }
    return st == OK ? file_truncate(&w->file, size, e) : st;
}

static enum status open_files(struct tokens_writer *w, const struct tokens_mark *from,
                              struct err *e)
{
    static const struct tokens_mark none;
    char documents[sizeof w->beside];
    enum status st;

    tokens_name_beside(w->beside, sizeof w->beside, w->path, from ? "part" : "tmp", !from);
    tokens_name_beside(documents, sizeof documents, w->path, from ? "part-documents" : "documents",
                       !from);
    tokens_name_beside(w->skeleton, sizeof w->skeleton, w->path,
                       from ? "part-skeleton" : "skeleton", !from);
    if ((st = file_open(&w->file, w->beside, FILE_KEEP, e)) != OK)
        return st;
    if ((st = file_lock(&w->file, e)) == OK)
        st = spool_open(&w->documents, documents,
                        from ? from->documents * (int64_t)sizeof(int64_t) : 0, e);
    return st == OK ? take_up(w, from ? from : &none, e) : st;
}

static enum status writer_open(struct tokens_writer **out, const struct tokens_head *h,
                               const struct tokens_mark *from, struct err *e)
{
    struct tokens_writer *w;
    enum status st;

    *out = NULL;
    BUG_IF(h->vocab_size < 1 || h->vocab_size > TOKENS_VOCAB_MAX || h->eod < -1 ||
           h->eod >= h->vocab_size);
    if (strlen(h->path) >= sizeof w->path)
        return err_set(e, E_FILE, "%.60s...: the path is longer than %zu bytes", h->path,
                       sizeof w->path - 1);
    if (file_is_dir(h->path))
        return err_set(e, E_FILE, "%s: a directory; name the file to write", h->path);
    w = mem_take(sizeof *w);
    snprintf(w->path, sizeof w->path, "%s", h->path);
    w->dtype = tokens_writer_dtype(h->vocab_size);
    w->vocab_size = h->vocab_size;
    w->eod = h->eod;
    if (h->tokenizer_bytes) {
        w->tokenizer_json =
            memcpy(mem_take(h->tokenizer_bytes), h->tokenizer_json, h->tokenizer_bytes);
        w->tokenizer_bytes = h->tokenizer_bytes;
    }
    w->hash = hash_open();
    w->buffer = mem_take(BUFFER_BYTES);
    if ((st = open_files(w, from, e)) != OK)
        writer_give(w, !from);
    else
        *out = w;
    return st;
}

enum status tokens_writer_open(struct tokens_writer **out, const char *path, int64_t vocab_size,
                               int64_t eod, const char *tokenizer_json, size_t tokenizer_bytes,
                               struct err *e)
{
    struct tokens_head h = { path, vocab_size, eod, tokenizer_json, tokenizer_bytes };

    return writer_open(out, &h, NULL, e);
}

enum status tokens_writer_open_at(struct tokens_writer **out, const struct tokens_head *h,
                                  const struct tokens_mark *from, struct err *e)
{
    return writer_open(out, h, from, e);
}

static enum status flush(struct tokens_writer *w, struct err *e)
{
    enum status st = file_write_at(&w->file, w->buffer, w->used, TOKENS_HEAD + w->written, e);

    hash_add(w->hash, w->buffer, w->used);
    w->written += (int64_t)w->used;
    w->used = 0;
    return st;
}

static enum status document_add(struct tokens_writer *w, struct err *e)
{
    w->new_document = 0;
    return spool_add(w->documents, &w->count, sizeof w->count, e);
}

void tokens_writer_document(struct tokens_writer *w)
{
    w->new_document = 1;
}

enum status tokens_writer_add(struct tokens_writer *w, const uint32_t *ids, int64_t n,
                              struct err *e)
{
    size_t size = dtype_size(w->dtype);
    enum status st;

    if (n > 0 && w->new_document && (st = document_add(w, e)) != OK)
        return st;
    for (int64_t i = 0; i < n; i++) {
        uint16_t small = (uint16_t)ids[i];

        if (ids[i] >= w->vocab_size)
            return err_set(e, E_FILE,
                           "%s: token %u at position %lld is not below the vocabulary size %lld",
                           w->path, ids[i], (long long)(w->count + i), (long long)w->vocab_size);
        if (w->used == BUFFER_BYTES && (st = flush(w, e)) != OK)
            return st;
        memcpy(w->buffer + w->used, size == 2 ? (const void *)&small : (const void *)&ids[i], size);
        w->used += size;
    }
    w->count += n;
    return OK;
}

enum status tokens_writer_stored(struct tokens_writer *w, const void *tokens, int64_t n,
                                 struct err *e)
{
    size_t left = (size_t)n * dtype_size(w->dtype);
    const char *p = tokens;
    enum status st = n > 0 && w->new_document ? document_add(w, e) : OK;

    while (left && st == OK) {
        size_t k = left < BUFFER_BYTES - w->used ? left : BUFFER_BYTES - w->used;

        memcpy(w->buffer + w->used, p, k);
        w->used += k;
        p += k;
        left -= k;
        if (left)
            st = flush(w, e);
    }
    w->count += n;
    return st;
}

struct tokens_mark tokens_writer_mark(const struct tokens_writer *w)
{
    return (struct tokens_mark){ w->count, ndocuments(w) };
}

/* The buffer goes out too, and will once more when it is full. */
enum status tokens_writer_sync(struct tokens_writer *w, struct tokens_mark *mark, struct err *e)
{
    enum status st = file_write_at(&w->file, w->buffer, w->used, TOKENS_HEAD + w->written, e);

    *mark = tokens_writer_mark(w);
    if (st == OK)
        st = file_sync(&w->file, e);
    return st == OK ? spool_sync(w->documents, e) : st;
}

int64_t tokens_writer_count(const struct tokens_writer *w)
{
    return w->count;
}

struct skeleton {
    int64_t tokens, documents, tokenizer; /* offsets */
};

static enum status skeleton_datasets(struct tokens_writer *w, struct h5 *h, struct skeleton *s,
                                     struct err *e)
{
    int64_t json_bytes = (int64_t)w->tokenizer_bytes, documents = ndocuments(w);
    enum status st;

    if ((st = h5_dataset(h, "/tokens", w->dtype, 1, &w->count, &s->tokens, e)) != OK ||
        (st = h5_dataset(h, "/documents", I64, 1, &documents, &s->documents, e)) != OK)
        return st;
    return w->tokenizer_bytes
               ? h5_dataset(h, "/tokenizer_json", U8, 1, &json_bytes, &s->tokenizer, e)
               : OK;
}

static enum status skeleton_attributes(struct tokens_writer *w, struct h5 *h, struct err *e)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        { "format_version", TOKENS_VERSION }, { "vocab_size", w->vocab_size },
        { "end_of_document", w->eod },        { "ntokens", w->count },
        { "ndocuments", ndocuments(w) },
    };
    struct hash_text hash;
    enum status st = h5_set_text(h, "/", "format", TOKENS_FORMAT, e);

    for (int i = 0; i < COUNT_OF(numbers) && st == OK; i++)
        st = h5_set_i64(h, "/", numbers[i].name, &numbers[i].value, 1, e);
    if (st != OK)
        return st;
    hash_add(w->hash, w->buffer,
             w->used); /* of the tokens' bytes: the rest that is not written yet */
    hash = hash_close(w->hash);
    w->hash = NULL;
    return h5_set_text(h, "/", "tokens_xxh3", hash.s, e);
}

static enum status skeleton_make(struct tokens_writer *w, struct skeleton *s, struct err *e)
{
    struct h5 *h;
    enum status st = h5_create(&h, w->skeleton, TOKENS_HEAD, 0, e), closed;

    if (st != OK)
        return st;
    st = skeleton_datasets(w, h, s, e);
    if (st == OK)
        st = skeleton_attributes(w, h, e);
    closed = h5_close(h, e);
    return st == OK ? closed : st;
}

/* Its head, and its size, go into our file. */
static enum status skeleton_copy(struct tokens_writer *w, struct err *e)
{
    struct file f;
    enum status st = file_open(&f, w->skeleton, FILE_READ, e);
    int64_t size = st == OK ? file_size(&f) : 0;
    size_t bytes = (size_t)min_i64(size, TOKENS_HEAD);
    char *head = mem_take(bytes);

    if (st == OK && (st = file_read_at(&f, head, bytes, 0, e)) == OK)
        st = file_write_at(&w->file, head, bytes, 0, e);
    if (st == OK)
        st = file_truncate(&w->file, size, e);
    mem_give(head);
    file_close(&f, NULL);
    file_remove(w->skeleton, NULL);
    return st;
}

/* What goes to places that only the skeleton knows. */
static enum status write_rest(struct tokens_writer *w, const struct skeleton *s, struct file *f,
                              struct err *e)
{
    enum status st;

    BUG_IF(w->written && s->tokens != TOKENS_HEAD);
    if ((st = file_write_at(f, w->buffer, w->used, s->tokens + w->written, e)) != OK ||
        (st = spool_copy(w->documents, f, s->documents, e)) != OK ||
        (st = file_write_at(f, w->tokenizer_json, w->tokenizer_bytes, s->tokenizer, e)) != OK)
        return st;
    return file_sync(f, e);
}

static enum status fill_skeleton(struct tokens_writer *w, const struct skeleton *s, struct err *e)
{
    struct file f;
    enum status st = file_open(&f, w->skeleton, FILE_UPDATE, e);

    if (st != OK)
        return st;
    if ((st = write_rest(w, s, &f, e)) == OK)
        return file_close(&f, e);
    file_close(&f, NULL);
    return st;
}

/* Killed at any moment, our file still has what a mark says of it. */
static enum status fill(struct tokens_writer *w, const struct skeleton *s, struct err *e)
{
    enum status st;

    if (w->small)
        return fill_skeleton(w, s, e);
    if ((st = skeleton_copy(w, e)) == OK)
        st = write_rest(w, s, &w->file, e);
    return st;
}

static const char *filled(const struct tokens_writer *w)
{
    return w->small ? w->skeleton : w->beside;
}

/* Read back what a reader would see: a mistake here must not cost a user's old file. */
static enum status writer_prove(struct tokens_writer *w, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open(&t, filled(w), e);

    if (st != OK)
        return st;
    if (t.count != w->count || t.ndocuments != ndocuments(w))
        st = err_set(e, E_FILE, "%s: reads back with other counts; nothing was replaced", w->path);
    tokens_close(&t);
    return st;
}

enum status tokens_writer_finish(struct tokens_writer *w, struct err *e)
{
    struct skeleton s = { 0 };
    enum status st;

    if (w->finished)
        return OK;
    if (w->count == 0)
        return err_set(e, E_FILE, "%s: there are no tokens to write", w->path);
    w->small = w->written == 0;
    if ((st = skeleton_make(w, &s, e)) == OK)
        st = fill(w, &s, e);
    if (st == OK)
        st = file_close(&w->file, e);
    if (st == OK)
        st = writer_prove(w, e);
    w->finished = st == OK;
    return st;
}

enum status tokens_writer_close(struct tokens_writer *w, struct err *e)
{
    enum status st = tokens_writer_finish(w, e);

    if (st == OK)
        st = file_rename(filled(w), w->path, e);
    if (st == OK)
        st = file_sync_parent(w->path, e);
    tokens_writer_cancel(w);
    return st;
}
