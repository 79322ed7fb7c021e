#include "convert/inputs.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "convert/jsonl.h"
#include "data/foreign.h"

enum { BATCH = 1 << 20 };
#define LINE_MAX_BYTES ((size_t)1 << 30)

int input_is_jsonl(const char *path)
{
    static const char *const endings[] = { ".jsonl", ".ndjson", ".json" };
    size_t n = strlen(path);

    for (int i = 0; i < COUNT_OF(endings); i++) {
        size_t k = strlen(endings[i]);

        if (n > k && strcasecmp(path + n - k, endings[i]) == 0)
            return 1;
    }
    return 0;
}

enum status input_check(const char *path, int64_t *all, struct err *e)
{
    char head[FOREIGN_HEAD];
    struct foreign what;
    struct file f;
    int64_t size;
    enum status st;

    if (file_is_dir(path))
        return err_set(e, E_FILE, "%s: a directory; name the files in it", path);
    if ((st = file_open(&f, path, FILE_READ, e)) != OK)
        return st;
    size = file_size(&f);
    st = file_read_at(&f, head, (size_t)min_i64(size, FOREIGN_HEAD), 0, e);
    file_close(&f, NULL);
    if (st != OK)
        return st;
    what = foreign_look(head, (size_t)min_i64(size, FOREIGN_HEAD), size);
    if (!what.is_text && !what.is_raw)
        return err_set(e, E_FILE, "%s: not text: it is %s; %s", path, what.what, what.cure);
    *all += size;
    return OK;
}

/* ---- batches ---- */

struct inputs {
    const char *const *path; /* [n] */
    const char *field;
    int n, next; /* the input after the open one */
    struct file f;
    struct jsonl *lines; /* NULL: the open input, if any, is a text */
    int64_t size, at;    /* of the open text */
    int64_t done, number;
};

struct inputs *inputs_open(const char *const *paths, int n, const char *field)
{
    struct inputs *in = mem_take(sizeof *in);

    *in = (struct inputs){ .path = paths, .field = field, .n = n, .f.fd = -1 };
    return in;
}

int64_t inputs_done(const struct inputs *in)
{
    return in->done + in->at + (in->lines ? jsonl_done(in->lines) : 0);
}

static void room_for(struct inputs_batch *b, size_t n)
{
    size_t room = b->room ? b->room : BATCH + INPUTS_PAD;

    if (n + INPUTS_PAD <= b->room)
        return;
    while (room < n + INPUTS_PAD)
        room *= 2;
    b->text = mem_grow(b->text, b->room, room);
    b->room = room;
}

/* Whole lines of about BATCH bytes, or one that is longer. */
static enum status next_text(struct inputs *in, struct inputs_batch *b, struct err *e)
{
    const char *newline = NULL;
    enum status st = OK;

    b->at = in->at;
    while (in->at + (int64_t)b->n < in->size && !newline && st == OK) {
        size_t n = (size_t)min_i64(BATCH, in->size - in->at - (int64_t)b->n);

        if (b->n >= LINE_MAX_BYTES)
            return err_set(e, E_FILE,
                           "%s: the line that begins at byte %lld is longer than %zu MiB, and a "
                           "line must fit in memory; split it",
                           in->f.path, (long long)in->at + 1, LINE_MAX_BYTES >> 20);
        room_for(b, b->n + n);
        st = file_read_at(&in->f, b->text + b->n, n, in->at + (int64_t)b->n, e);
        newline = memrchr(b->text + b->n, '\n', n);
        b->n += n;
    }
    if (newline && in->at + (int64_t)b->n < in->size)
        b->n = (size_t)(newline + 1 - b->text);
    in->at += (int64_t)b->n;
    return st;
}

static enum status next_lines(struct inputs *in, struct inputs_batch *b, struct err *e)
{
    const char *text;
    size_t n;
    enum status st = OK;

    while (b->n < BATCH && (st = jsonl_next(in->lines, &text, &n, e)) == OK && text) {
        room_for(b, b->n + n);
        memcpy(b->text + b->n, text, n);
        b->n += n;
        if (b->nends == b->ends_room) {
            size_t room = 2 * b->ends_room + 256;

            b->end = mem_grow(b->end, b->ends_room * sizeof *b->end, room * sizeof *b->end);
            b->ends_room = room;
        }
        b->end[b->nends++] = (int64_t)b->n;
    }
    return st;
}

static void input_close(struct inputs *in)
{
    if (in->f.fd >= 0)
        in->done += file_size(&in->f);
    jsonl_close(in->lines);
    file_close(&in->f, NULL);
    in->lines = NULL;
    in->size = in->at = 0;
}

enum status inputs_next(struct inputs *in, struct inputs_batch *b, struct err *e)
{
    enum status st = OK;

    b->number = in->number++;
    for (;;) {
        b->n = b->nends = 0;
        if (in->f.fd >= 0 && st == OK)
            st = in->lines ? next_lines(in, b, e) : next_text(in, b, e);
        if (st != OK || b->n || (in->f.fd < 0 && in->next == in->n))
            break;
        input_close(in);
        if (in->next == in->n)
            break;
        b->path = in->path[in->next++];
        if ((st = file_open(&in->f, b->path, FILE_READ, e)) != OK)
            break;
        in->size = file_size(&in->f);
        if (input_is_jsonl(b->path)) {
            in->lines = jsonl_open(&in->f, in->field);
            in->size = 0;
        }
    }
    b->path = in->next ? in->path[in->next - 1] : NULL;
    if (b->n)
        memset(b->text + b->n, 0, INPUTS_PAD);
    return st;
}

void inputs_batch_close(struct inputs_batch *b)
{
    mem_give(b->text);
    mem_give(b->end);
}

void inputs_close(struct inputs *in)
{
    input_close(in);
    mem_give(in);
}
