/* Token files of other programs: ids against the vocabulary, identity, files beyond 2^32 tokens. */
#include "data/tokens_file.h"
#include "store/h5.h"
#include "tests/token_formats.h"

/* ---- ids ---- */

static void test_ids(void)
{
    struct tokens_stated stated = { I32, -1 };
    struct tokens t;
    int32_t ids[N];
    const char *path = path_of("r.u");
    struct corpus c;

    write_raw(4);
    tap_ok(holds(corpus_open(&c, &path, 1, 8, &stated, &err)) &&
               holds(corpus_limit(&c, 251, 1, &err)),
           "all ids are below 251");
    tap_ok(fails(corpus_limit(&c, 250, 1, &err), "has id 250, but model.vocab_size is 250: set "
                                                 "vocab_size to at least 251"),
           "not below 250, seen at the start");
    corpus_close(&c);
    put_tokens(4);
    memset(out.p + 4 * 77, 0xff, 4);
    save("r.u");
    holds(tokens_open_as(&t, path, &stated, &err));
    tap_ok(fails(tokens_read(&t, 70, 20, ids, &err), "r.u: token 77 is -1, which is no id"),
           "a negative id");
    tokens_close(&t);
}

/* ---- identity ---- */

static struct hash_text hash_of(const char *name, int64_t eod)
{
    struct tokens_stated stated = { U16, eod };
    struct hash_text h = { "" };
    struct tokens t;

    if (holds(tokens_open_as(&t, path_of(name), &stated, &err)))
        memcpy(h.s, t.hash, sizeof h.s);
    tokens_close(&t);
    return h;
}

static void test_identity(void)
{
    enum { LARGE = 3 << 20 }; /* bytes */
    static const int64_t at[] = { 0, 1000000, 2097152, LARGE - 1 };
    struct hash_text first, again;
    char *p = mem_take(LARGE);

    for (int i = 0; i < LARGE; i++)
        p[i] = (char)(i * 31 + (i >> 8)) | 1;
    file_write_whole(path_of("a.u"), p, LARGE, &err);
    first = hash_of("a.u", -1);
    file_write_whole(path_of("b.u"), p, LARGE, &err);
    tap_ok(first.s[31] && !strcmp(first.s, hash_of("b.u", -1).s), "a copy has the same hash");
    for (int i = 0; i < COUNT_OF(at); i++) {
        p[at[i]] ^= 2;
        file_write_whole(path_of("b.u"), p, LARGE, &err);
        tap_ok(strcmp(first.s, hash_of("b.u", -1).s), "another byte at %lld: another hash",
               (long long)at[i]);
        p[at[i]] ^= 2;
    }
    file_write_whole(path_of("b.u"), p, LARGE - 2, &err);
    tap_ok(strcmp(first.s, hash_of("b.u", -1).s), "a token less: another hash");
    tap_ok(strcmp(first.s, hash_of("a.u", 7).s), "documents that end elsewhere: another hash");
    mem_give(p);
    write_datatrove(2, NULL);
    again = hash_of("d.ds", -1);
    for (int d = 1; d <= DOCUMENTS; d++)
        put(d == 1 ? 2 : starts[d], 8);
    save("d.ds.index");
    tap_ok(strcmp(again.s, hash_of("d.ds", -1).s), "other documents: another hash");
}

/* ---- public bug B39: beyond 2^31 and 2^32 tokens ---- */

enum { PLACES = 10 };
static const int64_t places[PLACES] = { 0,
                                        (1LL << 30) - 1,
                                        1LL << 30,
                                        (1LL << 31) - 1,
                                        1LL << 31,
                                        (1LL << 31) + 1,
                                        (1LL << 32) - 1,
                                        1LL << 32,
                                        (1LL << 32) + 1,
                                        (1LL << 32) + 90 };
static const int64_t large_n = (1LL << 32) + 100, part = 1LL << 30;

static void plant(struct file *f, int64_t at, size_t size)
{
    int64_t v = at % 60000 + 1;

    file_write_at(f, &v, size, at * (int64_t)size, &err);
}

static int has_planted(const struct corpus *c, int64_t at)
{
    int32_t rows[5][8];
    struct batch_rows b = { rows[0], rows[1], rows[2], rows[3], rows[4] };
    int64_t k = at / 8;

    return holds(batch_fill(c, &b, 0, k, 1, 1, &err)) && rows[0][at % 8] == at % 60000 + 1;
}

static void check_large(const char *name, enum dtype type, const struct tokens_stated *stated)
{
    const char *path = path_of(name);
    struct corpus c;
    int good = holds(corpus_open(&c, &path, 1, 8, stated, &err)) && c.count == large_n &&
               c.samples == (large_n - 1) / 8;

    for (int i = 0; i < PLACES && good; i++) {
        good = has_planted(&c, places[i]);
        if (c.file[0].ndocuments)
            good &= tokens_document(&c.file[0], places[i]) == places[i] / part;
    }
    tap_ok(good, "B39: %s of %lld %s tokens, read at every boundary", name, (long long)large_n,
           dtype_name(type));
    corpus_close(&c);
    file_remove(path, NULL);
}

static void test_large(const char *name, enum dtype type)
{
    const int64_t n = large_n;
    struct tokens_stated stated = { name[0] == 'r' ? (int)type : -1, 9 };
    const char *path = path_of(name);
    size_t size = dtype_size(type);
    struct file f;

    file_open(&f, path, FILE_REPLACE, &err);
    if (file_truncate(&f, n * (int64_t)size, &err) != OK) {
        tap_skip(1, "%s", err.text);
        file_close(&f, NULL);
        return;
    }
    for (int i = 0; i < COUNT_OF(places); i++)
        plant(&f, places[i], size);
    file_close(&f, NULL);
    if (name[0] == 'd') {
        for (int i = 1; i <= 4; i++)
            put(i * part, 8);
        put(n, 8);
        save("d.ds.index");
    } else if (name[0] == 'm') {
        memcpy(out.p, "MMIDIDX\0\0", out.n = 9);
        put(1, 8);
        put(type == I32 ? 4 : 8, 1);
        put(5, 8);
        put(6, 8);
        for (int i = 0; i < 5; i++)
            put(i < 4 ? part : 100, 4);
        for (int i = 0; i < 5; i++)
            put(i * part * (int64_t)size, 8);
        for (int i = 0; i < 6; i++)
            put(i, 8);
        save("m.idx");
    }
    check_large(name, type, &stated);
}

/* A sparse token file of our own: a header, and nothing written but the planted tokens. */
static void test_large_own(enum dtype type)
{
    const char *path = path_of("t.h5");
    int64_t n = large_n, ndocuments = 5, at = 0, list = 0, version = TOKENS_VERSION, vocab = 65536;
    int64_t eod = -1;
    struct h5 *h;
    struct file f;

    if (h5_create(&h, path, 1 << 20, 0, &err) != OK ||
        h5_dataset(h, "/tokens", type, 1, &n, &at, &err) != OK) {
        tap_skip(1, "%s", err.text);
        return;
    }
    h5_dataset(h, "/documents", I64, 1, &ndocuments, &list, &err);
    h5_set_text(h, "/", "format", TOKENS_FORMAT, &err);
    h5_set_text(h, "/", "tokens_xxh3", "00000000000000000000000000000000", &err);
    h5_set_i64(h, "/", "format_version", &version, 1, &err);
    h5_set_i64(h, "/", "vocab_size", &vocab, 1, &err);
    h5_set_i64(h, "/", "end_of_document", &eod, 1, &err);
    h5_set_i64(h, "/", "ntokens", &n, 1, &err);
    h5_set_i64(h, "/", "ndocuments", &ndocuments, 1, &err);
    h5_close(h, &err);
    file_open(&f, path, FILE_UPDATE, &err);
    for (int i = 0; i < PLACES; i++) {
        int64_t v = places[i] % 60000 + 1;

        file_write_at(&f, &v, dtype_size(type), at + places[i] * (int64_t)dtype_size(type), &err);
    }
    for (int64_t d = 0; d < ndocuments; d++) {
        int64_t first = d * part;

        file_write_at(&f, &first, sizeof first, list + d * 8, &err);
    }
    file_close(&f, NULL);
    check_large("t.h5", type, NULL);
}

int main(void)
{
    tap_plan(3 + 8 + 7);
    if (!mkdtemp(dir))
        return 1;
    test_ids();
    test_identity();
    test_large("r.u", U16);
    test_large("r.u", I64);
    test_large("d.ds", U16);
    test_large("m.bin", U16);
    test_large("m.bin", I32);
    test_large_own(U16);
    test_large_own(U32);
    file_remove_tree(dir, NULL);
    return tap_done();
}
