/* A small stream of tokens in the formats of other programs, written as those would. */
#ifndef TESTS_TOKEN_FORMATS_H
#define TESTS_TOKEN_FORMATS_H
#include <stdint.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "data/sampler.h"
#include "tests/tap.h"

enum { N = 1000, DOCUMENTS = 5 };

/* Token i of the stream; the documents begin at starts. */
static const int64_t starts[DOCUMENTS + 1] = { 0, 3, 3, 500, 999, N };
static inline uint32_t token(int64_t i)
{
    return (uint32_t)(i * 7919 % 251);
}

static char dir[64] = "/tmp/pretrain-formats.XXXXXX";
static struct err err;

static const char *path_of(const char *name)
{
    static char path[8][160];
    static int turn;

    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static inline int fails(enum status st, const char *text)
{
    int good = st == E_FILE && strstr(err.text, text);

    if (!good)
        printf("# status %d, not '%s': %s\n", (int)st, text, err.text);
    err.text[0] = '\0';
    return good;
}

static inline int holds(enum status st)
{
    if (st != OK)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return st == OK;
}

/* ---- what other programs would write ---- */

struct bytes {
    unsigned char p[65536];
    size_t n;
};
static struct bytes out;
/* Not synced: there are thousands. */
static inline void put_file(const char *path, const void *p, size_t n)
{
    struct file f;

    if (file_open(&f, path, FILE_REPLACE, &err) == OK)
        file_write_at(&f, p, n, 0, &err);
    file_close(&f, &err);
}

static inline void put(int64_t v, size_t size)
{
    memcpy(out.p + out.n, &v, size); /* little-endian */
    out.n += size;
}

static inline void put_tokens(size_t size)
{
    for (int64_t i = 0; i < N; i++)
        put(token(i), size);
}

static inline void save(const char *name)
{
    put_file(path_of(name), out.p, out.n);
    out.n = 0;
}

static inline void put_idx(int code, size_t size, int modes)
{
    memcpy(out.p, "MMIDIDX\0\0", out.n = 9);
    put(1, 8);
    put(code, 1);
    put(DOCUMENTS, 8);
    put(DOCUMENTS + 1, 8);
    for (int d = 0; d < DOCUMENTS; d++)
        put(starts[d + 1] - starts[d], 4);
    for (int d = 0; d < DOCUMENTS; d++)
        put(starts[d] * (int64_t)size, 8);
    for (int d = 0; d <= DOCUMENTS; d++)
        put(d, 8);
    for (int d = 0; d < DOCUMENTS * modes; d++)
        put(0, 1);
}

static inline void write_megatron(int code, size_t size, int modes)
{
    put_idx(code, size, modes);
    save("m.idx");
    put_tokens(size);
    save("m.bin");
}

static inline void write_datatrove(size_t size, const char *metadata)
{
    for (int d = 1; d <= DOCUMENTS; d++)
        put(starts[d], 8);
    save("d.ds.index");
    put_tokens(size);
    save("d.ds");
    file_remove(path_of("d.ds.metadata"), NULL);
    if (metadata)
        put_file(path_of("d.ds.metadata"), metadata, strlen(metadata));
}

static inline void put_llmc(int magic, int version, int n, size_t size)
{
    put(magic, 4);
    put(version, 4);
    put(n, 4);
    out.n = 1024;
    put_tokens(size);
}

static inline void write_llmc(int magic, int version, size_t size)
{
    memset(out.p, 0, 1024);
    put_llmc(magic, version, N, size);
    save("l.bin");
}

static inline void write_raw(size_t size)
{
    put_tokens(size);
    save("r.u");
}
#endif
