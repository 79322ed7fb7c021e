#include "data/spool.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { ROOM = 1 << 18 };

struct spool {
    struct file f; /* opened when something is written */
    char path[4096 + 64];
    char *buffer; /* [ROOM], behind what is written */
    size_t used;
    int64_t written;
};

enum status spool_open(struct spool **out, const char *path, int64_t keep, struct err *e)
{
    struct spool *s = mem_take(sizeof *s);
    enum status st = OK;

    *out = s;
    s->f.fd = -1;
    s->buffer = mem_take(ROOM);
    snprintf(s->path, sizeof s->path, "%s", path);
    if (keep == 0)
        return OK;
    if ((st = file_open(&s->f, path, FILE_UPDATE, e)) == OK && file_size(&s->f) < keep)
        st = err_set(e, E_FILE, "%s: it is shorter than it was", path);
    s->written = keep;
    if (st != OK) {
        spool_close(s, 0);
        *out = NULL;
    }
    return st;
}

static enum status flush(struct spool *s, struct err *e)
{
    enum status st = OK;

    if (s->used == 0)
        return OK;
    if (s->f.fd < 0)
        st = file_open(&s->f, s->path, FILE_REPLACE, e);
    if (st == OK)
        st = file_write_at(&s->f, s->buffer, s->used, s->written, e);
    if (st != OK)
        return st;
    s->written += (int64_t)s->used;
    s->used = 0;
    return OK;
}

enum status spool_add(struct spool *s, const void *p, size_t n, struct err *e)
{
    enum status st = OK;

    BUG_IF(n > ROOM);
    if (s->used + n > ROOM)
        st = flush(s, e);
    if (st != OK)
        return st;
    memcpy(s->buffer + s->used, p, n);
    s->used += n;
    return OK;
}

int64_t spool_bytes(const struct spool *s)
{
    return s->written + (int64_t)s->used;
}

enum status spool_sync(struct spool *s, struct err *e)
{
    enum status st = flush(s, e);

    return st == OK && s->f.fd >= 0 ? file_sync(&s->f, e) : st;
}

enum status spool_read(struct spool *s, void *to, size_t n, int64_t at, struct err *e)
{
    enum status st = flush(s, e);

    return st == OK && n ? file_read_at(&s->f, to, n, at, e) : st;
}

enum status spool_copy(struct spool *s, struct file *to, int64_t at, struct err *e)
{
    char *piece = mem_take(ROOM);
    enum status st = OK;

    for (int64_t done = 0; done < s->written && st == OK; done += ROOM) {
        size_t n = (size_t)min_i64(ROOM, s->written - done);

        if ((st = file_read_at(&s->f, piece, n, done, e)) == OK)
            st = file_write_at(to, piece, n, at + done, e);
    }
    if (st == OK)
        st = file_write_at(to, s->buffer, s->used, at + s->written, e);
    mem_give(piece);
    return st;
}

void spool_close(struct spool *s, int remove)
{
    if (!s)
        return;
    file_close(&s->f, NULL);
    if (remove)
        file_remove(s->path, NULL);
    mem_give(s->buffer);
    mem_give(s);
}
