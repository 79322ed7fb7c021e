#include "data/tokens_foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "data/foreign.h"

enum {
    MEGATRON_HEAD = 34,
    LLMC_HEAD = 1024,
    METADATA_MAX = 1 << 16,
    HASH_END = 1 << 20,
    HASH_BLOCK = 4096,
    HASH_BLOCKS = 64
};
#define MEGATRON_MAGIC "MMIDIDX\0\0" /* and the 0 of the string: 9 bytes are compared */

/* Numbers of files that need not be aligned. */
static int64_t load_i64(const void *p)
{
    int64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

static int32_t load_i32(const void *p)
{
    int32_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n > k && strcmp(s + n - k, end) == 0;
}

/* PATH without its last `cut` bytes, then `end`. */
struct beside {
    char path[4096 + 16];
};
static struct beside beside(const char *path, size_t cut, const char *end)
{
    struct beside b;

    snprintf(b.path, sizeof b.path, "%.*s%s", (int)(strlen(path) - cut), path, end);
    return b;
}

static enum status map_file(struct tokens_map *m, const char *path, struct err *e)
{
    struct file f;
    enum status st = file_open(&f, path, FILE_READ, e);

    if (st == OK)
        st = file_map(&f, &m->at, &m->bytes, e);
    file_close(&f, NULL);
    return st;
}

/* t->map holds nothing but tokens. */
static enum status take_stream(struct tokens *t, enum dtype type, size_t head, struct err *e)
{
    size_t size = dtype_size(type);

    if (t->map.bytes < head || (t->map.bytes - head) % size)
        return err_set(e, E_FILE,
                       "%s: %zu bytes of tokens are not a whole number of %s (%s); is the type "
                       "right, or the file cut?",
                       t->path, t->map.bytes - head, dtype_name(type), t->format);
    t->dtype = type;
    t->data = (const char *)t->map.at + head;
    t->count = (int64_t)((t->map.bytes - head) / size);
    return OK;
}

/* ---- Megatron ---- */

static int64_t megatron_end(const struct tokens *t, int64_t sequence) /* in bytes */
{
    const char *lengths = (const char *)t->index.at + MEGATRON_HEAD;

    return (int64_t)((uint64_t)load_i64(t->offsets + 8 * sequence) + /* may be any numbers */
                     (uint64_t)(load_i32(lengths + 4 * sequence) * (int64_t)dtype_size(t->dtype)));
}

static int64_t megatron_first(const struct tokens *t, int64_t d)
{
    int64_t sequence = load_i64(t->list + 8 * d);

    if (sequence < 0 || sequence > t->nsequences)
        return -1;
    return sequence == t->nsequences
               ? t->count
               : load_i64(t->offsets + 8 * sequence) / (int64_t)dtype_size(t->dtype);
}

/* The sequences lie one after the other and fill the .bin: those that are looked at. */
static enum status check_sequences(const struct tokens *t, const char *idx, struct err *e)
{
    enum { LOOK = 4096 };
    int64_t n = t->nsequences, looks = min_i64(n, LOOK);
    int64_t bytes = t->count * (int64_t)dtype_size(t->dtype);

    if (megatron_end(t, n - 1) != bytes)
        return err_set(e, E_FILE,
                       "%s: it has %" PRId64 " bytes of tokens, but %s lists %" PRId64
                       ": they are not of one run, or one is cut; make or copy them again",
                       t->path, bytes, idx, megatron_end(t, n - 1));
    for (int64_t k = 0; k < looks; k++) {
        int64_t i = looks == n ? k : k * (n / looks), at = load_i64(t->offsets + 8 * i);

        if (at != (i ? megatron_end(t, i - 1) : 0) || megatron_end(t, i) < at ||
            megatron_end(t, i) > bytes)
            return err_set(e, E_FILE,
                           "%s: sequence %" PRId64 " begins at byte %" PRId64
                           ", not where the one before it ends; make the file again",
                           idx, i, at);
    }
    return OK;
}

static enum status megatron_header(struct tokens *t, const char *idx, enum dtype *type,
                                   struct err *e)
{
    static const int types[] = { -1, U8, -1, -1, I32, I64, -1, -1, U16 };
    const unsigned char *p = t->index.at;
    int64_t bytes = (int64_t)t->index.bytes, n, nd, rest;

    if (bytes < MEGATRON_HEAD || memcmp(p, MEGATRON_MAGIC, 9))
        return err_set(
            e, E_FILE,
            "%s: not a Megatron index (MMIDIDX), but it lies beside %s; make it again, or "
            "rename it if that is a raw stream",
            idx, t->path);
    if (load_i64(p + 9) != 1)
        return err_set(e, E_FILE, "%s: version %" PRId64 " of the index; this program reads 1", idx,
                       load_i64(p + 9));
    if (p[17] >= COUNT_OF(types) || types[p[17]] < 0)
        return err_set(
            e, E_FILE,
            "%s: type code %d is not one of uint8 (1), int32 (4), int64 (5), uint16 (8); "
            "preprocess again",
            idx, p[17]);
    *type = (enum dtype)types[p[17]];
    n = load_i64(p + 18);
    nd = load_i64(p + 26);
    if (n < 1 || n > (bytes - MEGATRON_HEAD) / 12 || nd < 2 ||
        nd > (bytes - MEGATRON_HEAD - 12 * n) / 8)
        return err_set(
            e, E_FILE,
            "%s: %" PRId64 " bytes cannot hold the %" PRId64 " sequences and %" PRId64
            " marks of documents that its head lists: cut or damaged; copy or make it again",
            idx, bytes, n, nd);
    rest = bytes - MEGATRON_HEAD - 12 * n - 8 * nd;
    if (rest != 0 && rest != n)
        return err_set(e, E_FILE, "%s: %" PRId64 " bytes behind its lists; make it again", idx,
                       rest);
    t->nsequences = n;
    t->ndocuments = nd - 1;
    t->offsets = (const char *)p + MEGATRON_HEAD + 4 * n;
    t->list = t->offsets + 8 * n;
    return OK;
}

static enum status open_megatron(struct tokens *t, const char *idx, struct err *e)
{
    enum dtype type = U16;
    enum status st;

    t->format = "Megatron";
    if ((st = map_file(&t->index, idx, e)) != OK ||
        (st = megatron_header(t, idx, &type, e)) != OK || (st = take_stream(t, type, 0, e)) != OK ||
        (st = check_sequences(t, idx, e)) != OK)
        return st;
    if (load_i64(t->list) != 0 || load_i64(t->list + 8 * t->ndocuments) != t->nsequences)
        return err_set(e, E_FILE,
                       "%s: its documents do not span all %" PRId64 " sequences; make it again",
                       idx, t->nsequences);
    t->first = megatron_first;
    return OK;
}

/* ---- datatrove, nanotron ---- */

static int64_t datatrove_first(const struct tokens *t, int64_t d)
{
    return d ? load_i64(t->list + 8 * (d - 1)) : 0;
}

/* "tokenizer|token_size", then the number of tokens: must agree, where they are there. */
static enum status check_metadata(const struct tokens *t, struct err *e)
{
    struct beside path = beside(t->path, 0, ".metadata");
    char *text, *line, *bar;
    size_t n;
    enum status st = OK;

    if (!file_exists(path.path))
        return OK;
    if ((st = file_read_text(path.path, METADATA_MAX, &text, &n, e)) != OK)
        return st;
    line = strchr(text, '\n');
    if (line)
        *line++ = '\0';
    bar = strrchr(text, '|');
    if (bar && atoi(bar + 1) != (int)dtype_size(t->dtype))
        st = err_set(
            e, E_FILE,
            "%s: it says that a token has %.20s bytes, but the size of %s and its index say "
            "%zu; they are not of one run",
            path.path, bar + 1, t->path, dtype_size(t->dtype));
    else if (line && *line >= '0' && *line <= '9' && strtoll(line, NULL, 10) != t->count)
        st = err_set(e, E_FILE,
                     "%s: it says %lld tokens, but %s has %" PRId64 "; they are not of one run",
                     path.path, strtoll(line, NULL, 10), t->path, t->count);
    mem_give(text);
    return st;
}

static enum status open_datatrove(struct tokens *t, const char *index, struct err *e)
{
    int64_t n, last, bytes = (int64_t)t->map.bytes;
    enum status st = map_file(&t->index, index, e);

    t->format = "datatrove";
    if (st != OK)
        return st;
    if (t->index.bytes == 0 || t->index.bytes % 8)
        return err_set(e, E_FILE,
                       "%s: %zu bytes are not a list of the documents' ends (uint64): cut? copy or "
                       "make it again",
                       index, t->index.bytes);
    n = (int64_t)(t->index.bytes / 8);
    last = load_i64((const char *)t->index.at + 8 * (n - 1));
    if (last < 1 || last > bytes / 2 || (bytes != 2 * last && bytes / 4 != last) || bytes % 2)
        return err_set(
            e, E_FILE,
            "%s: %" PRId64 " bytes are not the %" PRId64
            " tokens of 2 or 4 bytes at which %s ends: they are not of one run, or one is "
            "cut",
            t->path, bytes, last, index);
    t->ndocuments = n;
    t->list = t->index.at;
    t->first = datatrove_first;
    st = take_stream(t, bytes == 2 * last ? U16 : U32, 0, e);
    return st == OK ? check_metadata(t, e) : st;
}

/* ---- llm.c ---- */

static const struct llmc {
    int32_t magic, version;
    enum dtype dtype;
} llmc_kinds[] = { { 20240520, 1, U16 }, { 20240801, 7, U32 } };

static enum status open_llmc(struct tokens *t, const struct llmc *k, struct err *e)
{
    int32_t version, n;

    t->format = "llm.c";
    if (t->map.bytes < LLMC_HEAD)
        return err_set(e, E_FILE,
                       "%s: %zu bytes do not hold llm.c's header of %d: cut? copy or make it again",
                       t->path, t->map.bytes, LLMC_HEAD);
    version = load_i32((const char *)t->map.at + 4);
    n = load_i32((const char *)t->map.at + 8);
    if (version != k->version)
        return err_set(e, E_FILE, "%s: version %d of llm.c's %s tokens; this program reads %d",
                       t->path, version, dtype_name(k->dtype), k->version);
    if (n < 1 || (size_t)n * dtype_size(k->dtype) != t->map.bytes - LLMC_HEAD)
        return err_set(
            e, E_FILE,
            "%s: its header says %d tokens of %s, but %zu bytes follow it: cut or damaged; "
            "copy or make it again",
            t->path, n, dtype_name(k->dtype), t->map.bytes - LLMC_HEAD);
    return take_stream(t, k->dtype, LLMC_HEAD, e);
}

/* ---- raw ---- */

/* Formats that are known by their first bytes are never raw; a stream may look like text by chance.
 */
static enum status open_raw(struct tokens *t, enum dtype type, const void *head, size_t n,
                            struct err *e)
{
    struct foreign what = foreign_look(head, n, (int64_t)t->map.bytes);

    t->format = "raw";
    if (what.is_text)
        warn("%s looks like text; if it is, make a token file with `pretrain-data tokenize`",
             t->path);
    else if (!what.is_raw)
        return err_set(e, E_FILE, "%s: not a raw stream of tokens: it is %s; %s", t->path,
                       what.what, what.cure);
    return take_stream(t, type, 0, e);
}

/* ---- identity ---- */

static void take_hash(struct tokens *t, int64_t eod)
{
    int64_t size = (int64_t)dtype_size(t->dtype), bytes = t->count * size;
    int64_t facts[] = { size, t->count, t->ndocuments ? t->ndocuments : -1 - eod };
    int64_t looks = min_i64(t->ndocuments, HASH_BLOCKS);
    struct hash_stream *h = hash_open();
    struct hash_text text;
    const char *p = t->data;

    hash_add(h, facts, sizeof facts);
    hash_add(h, p, (size_t)(bytes > 2 * HASH_END ? HASH_END : bytes));
    if (bytes > 2 * HASH_END) {
        int64_t between = bytes - 2 * HASH_END;

        hash_add(h, p + bytes - HASH_END, HASH_END);
        for (int64_t i = 0; i < HASH_BLOCKS; i++) {
            int64_t at = HASH_END + i * (between / HASH_BLOCKS);

            hash_add(h, p + at, (size_t)min_i64(HASH_BLOCK, bytes - at));
        }
    }
    for (int64_t i = 0; i < looks; i++) {
        int64_t first = tokens_first(t, i * (t->ndocuments / looks));

        hash_add(h, &first, sizeof first);
    }
    text = hash_close(h);
    memcpy(t->hash, text.s, sizeof t->hash);
}

/* ---- which ---- */

static enum status open_kind(struct tokens *t, const void *head, size_t n,
                             const struct tokens_stated *stated, int *known, struct err *e)
{
    struct beside idx = beside(t->path, ends_with(t->path, ".bin") ? 4 : 0, ".idx");
    struct beside index = beside(t->path, 0, ".index");
    int32_t magic = n >= 4 ? load_i32(head) : 0;

    *known = 1;
    for (int i = 0; i < COUNT_OF(llmc_kinds); i++)
        if (magic == llmc_kinds[i].magic)
            return open_llmc(t, &llmc_kinds[i], e);
    if (ends_with(t->path, ".bin") && file_exists(idx.path))
        return open_megatron(t, idx.path, e);
    if (file_exists(index.path))
        return open_datatrove(t, index.path, e);
    if (stated->dtype >= 0)
        return open_raw(t, (enum dtype)stated->dtype, head, n, e);
    *known = 0;
    return OK;
}

enum status tokens_foreign_open(struct tokens *t, struct file *f, const void *head, size_t n,
                                const struct tokens_stated *stated, int *known, struct err *e)
{
    enum status st = file_map(f, &t->map.at, &t->map.bytes, e);

    if (st == OK)
        st = open_kind(t, head, n, stated, known, e);
    if (st == OK && *known && t->count > 0)
        take_hash(t, stated->eod);
    return st;
}
