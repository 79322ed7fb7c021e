#include "convert/byte_source.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "convert/unpack.h"

enum { ROOM = 1 << 17, MAGIC = 4 };

struct byte_source {
    struct file f;
    struct unpack *unpack; /* NULL: plain */
    int64_t done;          /* bytes read from the file */
    char buffer[ROOM];     /* [used, filled) is not taken yet */
    size_t used, filled;
    int at_end, inside; /* of the file; of a member */
};

static enum status fill(struct byte_source *s, struct err *e)
{
    enum status st;
    size_t got = 0;

    if (s->used == s->filled)
        s->used = s->filled = 0;
    st = file_read_next(&s->f, s->buffer + s->filled, ROOM - s->filled, &got, e);
    s->filled += got;
    s->done += (int64_t)got;
    s->at_end = got == 0;
    return st;
}

enum status byte_source_open(struct byte_source **out, const char *path, struct err *e)
{
    struct byte_source *s = mem_take(sizeof *s);
    enum status st = OK;

    s->f.fd = -1;
    if (strcmp(path, "-") == 0)
        file_of_stdin(&s->f);
    else
        st = file_open(&s->f, path, FILE_READ, e);
    while (st == OK && s->filled < MAGIC && !s->at_end)
        st = fill(s, e);
    if (st == OK && (st = unpack_open(&s->unpack, s->buffer, s->filled, e)) != OK)
        err_prefix(e, "%s", s->f.path);
    if (st != OK) {
        byte_source_close(s);
        s = NULL;
    }
    *out = s;
    return st;
}

/* ---- packed ---- */

static enum status damaged(const struct byte_source *s, const char *why, struct err *e)
{
    return err_set(e, E_FILE, "%s: the %s data is damaged near byte %lld (%s); get the file again",
                   s->f.path, unpack_name(s->unpack),
                   (long long)(s->done - (int64_t)(s->filled - s->used)), why);
}

/* *n: what is left to be filled; moved 0: there was nothing to do it with. */
static enum status step(struct byte_source *s, char **to, size_t *n, int *moved, struct err *e)
{
    struct unpack_step k = { s->buffer + s->used, s->filled - s->used, *to, *n, NULL };
    int state = unpack_step(s->unpack, &k);

    *moved = k.nout != *n || k.nin != s->filled - s->used;
    s->used = s->filled - k.nin;
    *to = k.out;
    *n = k.nout;
    if (state < 0)
        return damaged(s, k.why, e);
    if (*moved)
        s->inside = state;
    return OK;
}

static enum status read_packed(struct byte_source *s, char *to, size_t n, size_t *got,
                               struct err *e)
{
    size_t left = n;
    int moved = 1;
    enum status st = OK;

    while (left && st == OK && (moved || !s->at_end)) {
        if (s->used == s->filled && !s->at_end)
            st = fill(s, e);
        if (st == OK)
            st = step(s, &to, &left, &moved, e);
    }
    *got = n - left;
    if (st == OK && left && s->inside)
        st = err_set(e, E_FILE,
                     "%s: the %s data ends too early, at byte %lld: the file is truncated; get it "
                     "again",
                     s->f.path, unpack_name(s->unpack), (long long)s->done);
    return st;
}

/* ---- either ---- */

static enum status read_plain(struct byte_source *s, char *to, size_t n, size_t *got, struct err *e)
{
    size_t k = s->filled - s->used < n ? s->filled - s->used : n, more = 1;
    enum status st = OK;

    memcpy(to, s->buffer + s->used, k);
    s->used += k;
    while (k < n && more && st == OK) {
        st = file_read_next(&s->f, to + k, n - k, &more, e);
        s->done += (int64_t)more;
        k += more;
    }
    *got = k;
    return st;
}

enum status byte_source_read(struct byte_source *s, void *to, size_t n, size_t *got, struct err *e)
{
    return s->unpack ? read_packed(s, to, n, got, e) : read_plain(s, to, n, got, e);
}

enum status byte_source_skip(struct byte_source *s, int64_t n, struct err *e)
{
    char *waste = mem_take(ROOM);
    enum status st = OK;
    size_t got = 1;

    if (!s->unpack && n <= file_size(&s->f) && (st = file_seek(&s->f, n, e)) == OK) {
        s->done = n;
        s->used = s->filled = 0;
        n = 0;
    }
    while (n > 0 && got && st == OK) {
        st = byte_source_read(s, waste, (size_t)min_i64(ROOM, n), &got, e);
        n -= (int64_t)got;
    }
    if (st == OK && n > 0)
        st = err_set(e, E_FILE, "%s: it is shorter than it was", s->f.path);
    mem_give(waste);
    return st;
}

int64_t byte_source_done(const struct byte_source *s)
{
    return s->done;
}

const char *byte_source_path(const struct byte_source *s)
{
    return s->f.path;
}

void byte_source_close(struct byte_source *s)
{
    if (!s)
        return;
    unpack_close(s->unpack);
    file_close(&s->f, NULL);
    mem_give(s);
}
