#include "convert/token_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"

enum { BUFFER_BYTES = 1 << 20, LLMC_HEAD = 1024 };

struct target {
    const char *format;
    const char *end;     /* that the name must have; NULL: any */
    enum dtype types[2]; /* of narrow and wide ids */
    int64_t head;        /* bytes before the tokens */
    int64_t most;        /* tokens that the format can hold; 0: any number */
    enum status (*finish)(struct token_stream *s, struct err *e); /* head, files beside; or NULL */
};

struct token_stream {
    const struct target *target;
    struct file file;
    char path[4096], beside[4096 + 32];
    enum dtype type;
    char *buffer; /* [BUFFER_BYTES] */
    size_t used;
    int64_t written, count; /* bytes of tokens in the file; tokens */
    int64_t *starts;        /* [ndocuments] */
    int64_t ndocuments, room;
    int new_document;
};

/* ---- what goes beside ---- */

struct bytes {
    char *p;
    size_t n;
};

static void put(struct bytes *b, int64_t v, size_t size)
{
    memcpy(b->p + b->n, &v, size); /* little-endian */
    b->n += size;
}

static int64_t end_of(const struct token_stream *s, int64_t d)
{
    return d + 1 < s->ndocuments ? s->starts[d + 1] : s->count;
}

static enum status write_beside(const struct token_stream *s, size_t cut, const char *end,
                                const struct bytes *b, struct err *e)
{
    char path[4096 + 16];

    snprintf(path, sizeof path, "%.*s%s", (int)(strlen(s->path) - cut), s->path, end);
    return file_write_whole(path, b->p, b->n, e);
}

/* A document of more tokens than an int32 counts is several sequences. */
static int64_t pieces_of(const struct token_stream *s, int64_t d)
{
    return ceil_div(end_of(s, d) - s->starts[d], INT32_MAX);
}

static int64_t piece(const struct token_stream *s, int64_t d, int64_t k)
{
    return min_i64(INT32_MAX, end_of(s, d) - s->starts[d] - k * INT32_MAX);
}

static enum status finish_megatron(struct token_stream *s, struct err *e)
{
    int64_t n = 0, size = (int64_t)dtype_size(s->type), sequence = 0;
    struct bytes b = { 0 };
    enum status st;

    for (int64_t d = 0; d < s->ndocuments; d++)
        n += pieces_of(s, d);
    b.p = mem_take(34 + 12 * (size_t)n + 8 * ((size_t)s->ndocuments + 1));
    memcpy(b.p, "MMIDIDX\0\0", b.n = 9);
    put(&b, 1, 8);
    put(&b, s->type == U16 ? 8 : 4, 1);
    put(&b, n, 8);
    put(&b, s->ndocuments + 1, 8);
    for (int64_t d = 0; d < s->ndocuments; d++)
        for (int64_t k = 0; k < pieces_of(s, d); k++)
            put(&b, piece(s, d, k), 4);
    for (int64_t d = 0; d < s->ndocuments; d++)
        for (int64_t k = 0; k < pieces_of(s, d); k++)
            put(&b, (s->starts[d] + k * INT32_MAX) * size, 8);
    for (int64_t d = 0; d <= s->ndocuments; d++) {
        put(&b, sequence, 8);
        sequence += d < s->ndocuments ? pieces_of(s, d) : 0;
    }
    st = write_beside(s, 4, ".idx", &b, e);
    mem_give(b.p);
    return st;
}

static enum status finish_datatrove(struct token_stream *s, struct err *e)
{
    struct bytes b = { mem_take((size_t)s->ndocuments * 8 + 1), 0 };
    char text[128];
    struct bytes metadata = { text, 0 };
    enum status st;

    for (int64_t d = 0; d < s->ndocuments; d++)
        put(&b, end_of(s, d), 8);
    metadata.n = (size_t)snprintf(text, sizeof text, "unknown|%zu\n%" PRId64 "\n%.3g B",
                                  dtype_size(s->type), s->count, (double)s->count / 1e9);
    st = write_beside(s, 0, ".index", &b, e);
    if (st == OK)
        st = write_beside(s, 0, ".metadata", &metadata, e);
    mem_give(b.p);
    return st;
}

static enum status finish_llmc(struct token_stream *s, struct err *e)
{
    char head[LLMC_HEAD] = { 0 };
    struct bytes b = { head, 0 };

    put(&b, s->type == U16 ? 20240520 : 20240801, 4);
    put(&b, s->type == U16 ? 1 : 7, 4);
    put(&b, s->count, 4);
    return file_write_at(&s->file, head, sizeof head, 0, e);
}

static const struct target targets[] = {
    { "megatron", ".bin", { U16, I32 }, 0, 0, finish_megatron },
    { "datatrove", NULL, { U16, U32 }, 0, 0, finish_datatrove },
    { "llm.c", NULL, { U16, U32 }, LLMC_HEAD, INT32_MAX, finish_llmc },
    { "raw", NULL, { U16, U32 }, 0, 0, NULL },
};

/* ---- the stream ---- */

static void give(struct token_stream *s)
{
    mem_give(s->buffer);
    mem_give(s->starts);
    mem_give(s);
}

void token_stream_cancel(struct token_stream *s)
{
    if (!s)
        return;
    file_close(&s->file, NULL);
    file_remove(s->beside, NULL);
    give(s);
}

enum status token_stream_open(struct token_stream **out, const char *path, const char *format,
                              int wide, struct err *e)
{
    const struct target *t = NULL;
    struct token_stream *s;
    size_t n = strlen(path), end;
    enum status st;

    *out = NULL;
    for (int i = 0; i < COUNT_OF(targets); i++)
        if (strcmp(targets[i].format, format) == 0)
            t = &targets[i];
    BUG_IF(!t);
    end = t->end ? strlen(t->end) : 0;
    if (n >= sizeof s->path || n <= end || (t->end && strcmp(path + n - end, t->end)))
        return err_set(e, E_INPUT, "%.200s: the name of a %s file must end in %s", path, format,
                       t->end ? t->end : "less than 4,096 bytes");
    s = mem_take(sizeof *s);
    s->target = t;
    s->type = t->types[wide != 0];
    snprintf(s->path, sizeof s->path, "%s", path);
    snprintf(s->beside, sizeof s->beside, "%s.tmp-%ld", path, (long)getpid());
    if ((st = file_open(&s->file, s->beside, FILE_REPLACE, e)) != OK) {
        give(s);
        return st;
    }
    s->buffer = mem_take(BUFFER_BYTES);
    s->new_document = 1;
    *out = s;
    return OK;
}

static enum status flush(struct token_stream *s, struct err *e)
{
    enum status st = file_write_at(&s->file, s->buffer, s->used, s->target->head + s->written, e);

    s->written += (int64_t)s->used;
    s->used = 0;
    return st;
}

void token_stream_document(struct token_stream *s)
{
    s->new_document = 1;
}

static void add_document(struct token_stream *s)
{
    if (s->ndocuments == s->room) {
        int64_t room = s->room ? 2 * s->room : 1024;

        s->starts = mem_grow(s->starts, (size_t)s->room * 8, (size_t)room * 8);
        s->room = room;
    }
    s->starts[s->ndocuments++] = s->count;
    s->new_document = 0;
}

enum status token_stream_add(struct token_stream *s, const int32_t *ids, int64_t n, struct err *e)
{
    size_t size = dtype_size(s->type);

    if (n > 0 && s->new_document)
        add_document(s);
    if (s->target->most && n > s->target->most - s->count)
        return err_set(e, E_FILE, "%s: more than the %" PRId64 " tokens that a %s file can hold",
                       s->path, s->target->most, s->target->format);
    for (int64_t i = 0; i < n; i++) {
        enum status st = s->used == BUFFER_BYTES ? flush(s, e) : OK;

        if (st != OK)
            return st;
        if (size == 2 && ids[i] > UINT16_MAX)
            return err_set(e, E_FILE,
                           "%s: token %d at position %" PRId64 " does not fit into 16 bits",
                           s->path, ids[i], s->count + i);
        memcpy(s->buffer + s->used, &ids[i], size); /* little-endian */
        s->used += size;
    }
    s->count += n;
    return OK;
}

enum status token_stream_close(struct token_stream *s, struct err *e)
{
    enum status st = flush(s, e);

    if (st == OK && s->target->finish)
        st = s->target->finish(s, e);
    if (st == OK)
        st = file_sync(&s->file, e);
    if (st == OK)
        st = file_close(&s->file, e);
    if (st == OK)
        st = file_rename(s->beside, s->path, e);
    token_stream_cancel(s);
    return st;
}
