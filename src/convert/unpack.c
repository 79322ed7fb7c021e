#include "convert/unpack.h"

#include <string.h>
#include <zlib.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/arena.h"

struct unpack {
    const struct kind *kind;
    z_stream z;
    int between; /* gzip: behind a member */
    void *zstd;  /* ZSTD_DCtx */
};

struct kind {
    const char *name;
    int (*is)(const unsigned char *head, size_t n);
    enum status (*open)(struct unpack *u, struct err *e);
    int (*step)(struct unpack *u, struct unpack_step *s);
    void (*close)(struct unpack *u);
};

/* ---- gzip ---- */

static int gzip_is(const unsigned char *p, size_t n)
{
    return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

static enum status gzip_open(struct unpack *u, struct err *e)
{
    return inflateInit2(&u->z, 15 + 16) == Z_OK
               ? OK
               : err_set(e, E_RESOURCE, "out of memory: no room to unpack gzip");
}

/* Some tools fill up the end with zeros. */
static void skip_zeros(struct unpack_step *s)
{
    while (s->nin && *s->in == 0) {
        s->in++;
        s->nin--;
    }
}

static int gzip_step(struct unpack *u, struct unpack_step *s)
{
    uInt in, out;
    int rc;

    if (u->between) {
        skip_zeros(s);
        if (s->nin == 0)
            return 0;
        u->between = 0;
        inflateReset(&u->z);
    }
    in = u->z.avail_in = (uInt)min_i64((int64_t)s->nin, 1 << 30);
    out = u->z.avail_out = (uInt)min_i64((int64_t)s->nout, 1 << 30);
    u->z.next_in = (Bytef *)(uintptr_t)s->in;
    u->z.next_out = (Bytef *)s->out;
    rc = inflate(&u->z, Z_NO_FLUSH);
    s->in += in - u->z.avail_in;
    s->nin -= in - u->z.avail_in;
    s->out += out - u->z.avail_out;
    s->nout -= out - u->z.avail_out;
    s->why = u->z.msg ? u->z.msg : "no reason given";
    u->between = rc == Z_STREAM_END;
    return rc == Z_STREAM_END ? 0 : rc == Z_OK || rc == Z_BUF_ERROR ? 1 : -1;
}

static void gzip_close(struct unpack *u)
{
    inflateEnd(&u->z);
}

/* ---- zstd ---- */

/* A frame, or one to be passed over. */
static int zstd_is(const unsigned char *p, size_t n)
{
    return n >= 4 && (memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0 ||
                      ((p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0));
}

#ifdef HAVE_ZSTD
static enum status zstd_open(struct unpack *u, struct err *e)
{
    u->zstd = ZSTD_createDCtx();
    return u->zstd ? OK : err_set(e, E_RESOURCE, "out of memory: no room to unpack zstd");
}

static int zstd_step(struct unpack *u, struct unpack_step *s)
{
    ZSTD_inBuffer in = { s->in, s->nin, 0 };
    ZSTD_outBuffer out = { s->out, s->nout, 0 };
    size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);

    s->in += in.pos;
    s->nin -= in.pos;
    s->out += out.pos;
    s->nout -= out.pos;
    if (!ZSTD_isError(rc))
        return rc != 0;
    s->why = ZSTD_getErrorName(rc);
    return -1;
}

static void zstd_close(struct unpack *u)
{
    ZSTD_freeDCtx(u->zstd);
}
#else
static enum status zstd_open(struct unpack *u, struct err *e)
{
    (void)u;
    return err_set(e, E_INPUT,
                   "a zstd file, and this build has no libzstd; unpack it (unzstd), or "
                   "install libzstd-dev and configure again");
}
static int zstd_step(struct unpack *u, struct unpack_step *s)
{
    (void)u;
    (void)s;
    return -1;
}
static void zstd_close(struct unpack *u)
{
    (void)u;
}
#endif

/* ---- either ---- */

static const struct kind kinds[] = {
    { "gzip", gzip_is, gzip_open, gzip_step, gzip_close },
    { "zstd", zstd_is, zstd_open, zstd_step, zstd_close },
};

static const struct kind *kind_of(const char *head, size_t n)
{
    for (int i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].is((const unsigned char *)head, n))
            return &kinds[i];
    return NULL;
}

int unpack_is(const char *head, size_t n)
{
    return kind_of(head, n) != NULL;
}

enum status unpack_open(struct unpack **out, const char *head, size_t n, struct err *e)
{
    const struct kind *kind = kind_of(head, n);
    enum status st;

    *out = NULL;
    if (!kind)
        return OK;
    *out = mem_take(sizeof **out);
    (*out)->kind = kind;
    if ((st = kind->open(*out, e)) != OK) {
        mem_give(*out);
        *out = NULL;
    }
    return st;
}

const char *unpack_name(const struct unpack *u)
{
    return u->kind->name;
}

int unpack_step(struct unpack *u, struct unpack_step *s)
{
    return u->kind->step(u, s);
}

void unpack_close(struct unpack *u)
{
    if (u)
        u->kind->close(u);
    mem_give(u);
}
