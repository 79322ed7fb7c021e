/* Token files: what is written is read, and nothing else is believed. */
#include "data/tokens.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "store/h5.h"
#include "tests/tap.h"

static char dir[64] = "/tmp/pretrain-tokens.XXXXXX";
static struct err err;

static const char *path_of(const char *name)
{
    static char path[4][2048];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int fails(enum status st, const char *text)
{
    int good = st == E_FILE && strstr(err.text, text);

    if (!good)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return good;
}

static int holds(enum status st)
{
    if (st != OK)
        printf("# status %d: %s\n", (int)st, err.text);
    err.text[0] = '\0';
    return st == OK;
}

static int names_in_dir(void)
{
    char **names;
    int n = 0;

    if (file_list(dir, &names, &n, &err) == OK)
        mem_give(names);
    return n;
}

static void remove_all(void)
{
    file_remove_tree(dir, NULL);
    file_make_dirs(dir, NULL);
}

/* ---- round trip ---- */

static uint32_t id_at(int64_t i, int64_t vocab)
{
    return (uint32_t)((uint64_t)i * 2654435761u % (uint64_t)vocab);
}

/* n tokens in pieces of odd sizes; a document every 1000 or so. */
static enum status write_file(const char *path, int64_t n, int64_t vocab, const char *json)
{
    enum { PIECE = 777 };
    struct tokens_writer *w;
    uint32_t ids[PIECE];
    enum status st = tokens_writer_open(&w, path, vocab, vocab - 1, json, json ? strlen(json) : 0,
                                        &err),
                closed;

    for (int64_t at = 0; at < n && st == OK; at += PIECE) {
        int64_t k = min_i64(PIECE, n - at);

        for (int64_t i = 0; i < k; i++)
            ids[i] = id_at(at + i, vocab);
        if (at % 3 == 0)
            tokens_writer_document(w);
        if (st == OK)
            st = tokens_writer_add(w, ids, k, &err);
    }
    closed = tokens_writer_close(w, &err);
    return st == OK ? closed : st;
}

static int reads_back(const struct tokens *t, int64_t n, int64_t vocab)
{
    int32_t *ids = mem_take((size_t)n * sizeof *ids);
    int good = t->count == n && t->vocab_size == vocab && t->eod == vocab - 1 &&
               tokens_read(t, 0, n, ids, &err) == OK;

    for (int64_t i = 0; i < n && good; i++)
        good = ids[i] == (int32_t)id_at(i, vocab);
    mem_give(ids);
    return good;
}

static void test_round_trip(void)
{
    static const struct {
        int64_t n, vocab;
        enum dtype dtype;
    } cases[] = {
        { 1, 257, U16 },
        { 2, 70000, U32 },
        { 1000, 65536, U16 },
        { 20000, 65537, U32 },
        { 32768, 65536, U16 },
        { 1 << 19, 50257, U16 },
        { (1 << 19) + 1, 300, U16 },
        { 1 << 18, 100000, U32 },
        { 1500000, 128256, U32 },
    };

    for (int i = 0; i < COUNT_OF(cases); i++) {
        int64_t bytes = cases[i].n * (int64_t)dtype_size(cases[i].dtype);
        const char *path = path_of("round trip.h5");
        struct tokens t;
        int good =
            holds(write_file(path, cases[i].n, cases[i].vocab, i % 2 ? "{\"a\": 1}" : NULL)) &&
            holds(tokens_open(&t, path, &err));

        if (!tap_ok(good && t.dtype == cases[i].dtype &&
                        reads_back(&t, cases[i].n, cases[i].vocab) &&
                        !strcmp(t.hash, hash_bytes(t.data, (size_t)bytes).s),
                    "%lld tokens of %lld, as %s", (long long)cases[i].n, (long long)cases[i].vocab,
                    dtype_name(cases[i].dtype)))
            continue;
        tap_ok(holds(tokens_check(&t, &(int64_t){ 0 }, &err)) &&
                   (i % 2) == (t.tokenizer_bytes == 8) &&
                   (!(i % 2) || !memcmp(t.tokenizer_json, "{\"a\": 1}", 8)) &&
                   (bytes < 65536 || (const char *)t.data - (const char *)t.map.at == 1 << 20),
               "checked; tokenizer kept; tokens at 1 MiB if they are large");
        tokens_close(&t);
    }
    tap_ok(names_in_dir() == 1, "nothing left beside");
}

/* The ids that 16 bits would wrap. */
static void test_wrap(void)
{
    static const uint32_t ids[] = { 65535, 65536, 69999, 0, 4463 };
    const char *path = path_of("wrap.h5");
    struct tokens_writer *w;
    struct tokens t;
    int32_t back[5] = { 0 };

    tokens_writer_open(&w, path, 70000, -1, NULL, 0, &err);
    tokens_writer_add(w, ids, 5, &err);
    tap_ok(holds(tokens_writer_close(w, &err)) && holds(tokens_open(&t, path, &err)) &&
               holds(tokens_read(&t, 0, 5, back, &err)) && back[0] == 65535 && back[1] == 65536 &&
               back[2] == 69999,
           "ids above 65535 do not wrap");
    tokens_close(&t);
}

static void test_documents(void)
{
    static const int64_t lengths[] = { 3, 0, 0, 1, 1, 50, 0, 7 };
    static const int64_t want[] = { 0, 3, 4, 5, 55 };
    const char *path = path_of("documents.h5");
    struct tokens_writer *w;
    struct tokens t;
    uint32_t ids[64] = { 0 };
    int good;

    tokens_writer_open(&w, path, 257, 256, NULL, 0, &err);
    for (int i = 0; i < COUNT_OF(lengths); i++) {
        tokens_writer_document(w);
        tokens_writer_add(w, ids, lengths[i], &err);
    }
    tokens_writer_document(w);
    good = holds(tokens_writer_close(w, &err)) && holds(tokens_open(&t, path, &err));
    for (int d = 0; d < 5 && good; d++)
        good = t.ndocuments == 5 && tokens_first(&t, d) == want[d];
    tap_ok(good, "documents without tokens are none");
    for (int64_t at = 0; at < t.count && good; at++) {
        int64_t start = 0;

        for (int d = 0; d < 5; d++)
            start = want[d] <= at ? want[d] : start;
        good = tokens_document_start(&t, at) == start &&
               tokens_first(&t, tokens_document(&t, at)) == start;
    }
    tap_ok(good, "the document of every token");
    tokens_close(&t);
}

/* ---- failures of the writer ---- */

static void test_writer(void)
{
    const uint32_t ids[] = { 5, 257 };
    const char *path = path_of("old.h5");
    struct tokens_writer *w;
    struct tokens t;

    remove_all();
    holds(write_file(path, 100, 257, NULL));
    tokens_writer_open(&w, path, 257, 256, NULL, 0, &err);
    tap_ok(fails(tokens_writer_add(w, ids, 2, &err), "token 257 at position 1"),
           "an id outside the vocabulary");
    tokens_writer_cancel(w);
    tokens_writer_open(&w, path, 257, 256, NULL, 0, &err);
    tap_ok(fails(tokens_writer_close(w, &err), "no tokens"), "nothing to write");
    tap_ok(names_in_dir() == 1 && holds(tokens_open(&t, path, &err)) && reads_back(&t, 100, 257),
           "the old file is untouched, nothing beside");
    tokens_close(&t);
    tap_ok(fails(tokens_writer_open(&w, dir, 257, 256, NULL, 0, &err), "a directory") && !w,
           "a directory is no output");
    tap_ok(
        fails(tokens_writer_open(&w, path_of("no/such/a.h5"), 257, 256, NULL, 0, &err), "no/such"),
        "a folder that is not there");
}

/* In a child, with a limit on file sizes that stops tokens, the skeleton or the end. */
static int limited(int64_t bytes, int64_t n)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct rlimit limit = { (rlim_t)bytes, (rlim_t)bytes };
        enum status st;

        setrlimit(RLIMIT_FSIZE, &limit);
        st = write_file(path_of("old.h5"), n, 257, NULL);
        _exit(st == E_FILE && err.text[0] ? 3 : 1);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

static void test_full(void)
{
    static const int64_t limits[] = {
        0, 1000, 33000, 1 << 20, (1 << 20) + 4096, 3 << 20, 3145728 + 1048576
    };
    struct tokens t;

    fflush(stdout);
    for (int i = 0; i < COUNT_OF(limits); i++)
        tap_ok(limited(limits[i], i < 3 ? 1000 * (i + 9) : 1600000), "no room after %lld bytes",
               (long long)limits[i]);
    tap_ok(names_in_dir() == 1 && holds(tokens_open(&t, path_of("old.h5"), &err)) &&
               reads_back(&t, 100, 257),
           "the old file is untouched, nothing beside");
    tokens_close(&t);
}

/* ---- files that are none of ours ---- */

static void put(const char *path, const void *bytes, size_t n)
{
    file_write_whole(path, bytes, n, &err);
}

static void test_foreign(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *said;
    } cases[] = {
        { "MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17, "Megatron index" },
        { "\x88\xd8\x34\x01\1\0\0\0", 8, "llm.c" },
        { "\xa1\xd9\x34\x01\7\0\0\0", 8, "llm.c's header of 1024" },
        { "\x02\0\0\0\0\0\0\0{}", 10, "safetensors" },
        { "\x93NUMPY\1\0", 8, "NumPy" },
        { "\x1f\x8b\x08\0", 4, "gunzip" },
        { "(\xb5/\xfd\0\0", 6, "unzstd" },
        { "Once upon a time\n", 17,
          "it is text; make a token file of it with `pretrain-data tokenize`" },
        { "", 0, "empty" },
        { "\x01\x00\x05\x00\x07\x00", 6, "pretrain-data import" },
        { "\x89HDF\r\n\x1a\n", 8, "truncated" },
    };
    struct tokens t;

    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *path = path_of("foreign");

        put(path, cases[i].bytes, cases[i].n);
        tap_ok(fails(tokens_open(&t, path, &err), cases[i].said), "refused: %s", cases[i].said);
    }
    tap_ok(fails(tokens_open(&t, dir, &err), "a directory"), "refused: a directory");
    tap_ok(fails(tokens_open(&t, path_of("absent.h5"), &err), "absent.h5"), "refused: absent");
}

static void test_truncated(void)
{
    const char *path = path_of("cut.h5");
    struct tokens t;
    char *bytes;
    size_t n;
    int good = holds(write_file(path_of("whole.h5"), 700000, 257, "{}"));

    file_read_text(path_of("whole.h5"), 1 << 24, &bytes, &n, &err);
    for (size_t cut = 1; cut < n; cut = cut < 4096 ? cut + 7 : cut + 70001) {
        put(path, bytes, cut);
        good &= tokens_open(&t, path, &err) == E_FILE && strstr(err.text, path);
        err.text[0] = '\0';
    }
    put(path, bytes, n - 1);
    tap_ok(good && fails(tokens_open(&t, path, &err), "truncated"),
           "a file cut anywhere is refused");
    mem_give(bytes);
}

/* Every bit of the metadata: refused, or read with the same contents; never a crash. */
static void test_damaged(void)
{
    enum { DAMAGED = 2400 };
    const char *path = path_of("damaged.h5");
    struct tokens t;
    struct file f;
    char *bytes;
    size_t n;
    int bad = 0, refused = 0, step = tap_soak() ? 1 : 3;

    holds(write_file(path_of("whole.h5"), 500, 257, "{}"));
    file_read_text(path_of("whole.h5"), 1 << 24, &bytes, &n, &err);
    put(path, bytes, n);
    file_open(&f, path, FILE_UPDATE, &err);
    for (int bit = 0; bit < DAMAGED * 8; bit += step) {
        char c = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        enum status st;

        file_write_at(&f, &c, 1, bit / 8, &err);
        st = tokens_open(&t, path, &err);
        if (st == OK) {
            bad += t.count != 500 || !reads_back(&t, 500, 257);
            tokens_close(&t);
        }
        refused += st == E_FILE;
        bad += st != OK && st != E_FILE;
        file_write_at(&f, &bytes[bit / 8], 1, bit / 8, &err);
        err.text[0] = '\0';
    }
    file_close(&f, &err);
    bad += tokens_open(&t, path, &err) != OK;
    tokens_close(&t);
    tap_ok(bad == 0 && refused > 500, "damaged metadata: %d of %d refused, none misread", refused,
           DAMAGED * 8 / step);
    mem_give(bytes);
}

static void test_damaged_tokens(void)
{
    const char *path = path_of("whole.h5");
    const uint16_t wrong = 3, outside = 999;
    int32_t ids[10];
    struct tokens t;
    struct file f;
    int64_t at;

    holds(write_file(path, 500, 257, NULL));
    holds(tokens_open(&t, path, &err));
    at = (const char *)t.data - (const char *)t.map.at;
    tokens_close(&t);
    file_open(&f, path, FILE_UPDATE, &err);
    file_write_at(&f, &wrong, 2, at + 2 * 17, &err);
    holds(tokens_open(&t, path, &err));
    tap_ok(fails(tokens_check(&t, &(int64_t){ 0 }, &err), "hash"),
           "another token: the hash says so");
    tokens_close(&t);
    file_write_at(&f, &outside, 2, at + 2 * 17, &err);
    holds(tokens_open(&t, path, &err));
    tap_ok(fails(tokens_read(&t, 10, 10, ids, &err), "token 999 at position 17"), "an id outside");
    tap_ok(fails(tokens_check(&t, &(int64_t){ 0 }, &err), "token 999 at position 17"),
           "check names it too");
    tokens_close(&t);
    file_close(&f, &err);
}

/* ---- HDF5 files that are not as we write them ---- */

struct odd {
    enum dtype tokens, documents;
    int64_t ntokens, ndocuments, said_tokens, vocab, eod, version, starts[3];
    const char *format, *message;
};

static void odd_make(const char *path, const struct odd *o)
{
    const int64_t shape[2] = { o->ntokens, 1 };
    int64_t at = 0, documents = 0;
    struct h5 *h;
    struct file f;
    enum status st = h5_create(&h, path, 1, 0, &err);

    if (st != OK)
        return;
    h5_dataset(h, "/tokens", o->tokens, o->ntokens == 7 ? 2 : 1, shape, &at, &err);
    h5_dataset(h, "/documents", o->documents, 1, &o->ndocuments, &documents, &err);
    h5_set_text(h, "/", "format", o->format, &err);
    h5_set_text(h, "/", "tokens_xxh3", "0123456789abcdef0123456789abcdef", &err);
    h5_set_i64(h, "/", "format_version", &o->version, 1, &err);
    h5_set_i64(h, "/", "vocab_size", &o->vocab, 1, &err);
    h5_set_i64(h, "/", "end_of_document", &o->eod, 1, &err);
    h5_set_i64(h, "/", "ntokens", &o->said_tokens, 1, &err);
    h5_set_i64(h, "/", "ndocuments", &o->ndocuments, 1, &err);
    h5_close(h, &err);
    file_open(&f, path, FILE_UPDATE, &err);
    file_write_at(&f, o->starts, (size_t)o->ndocuments * dtype_size(o->documents), documents, &err);
    file_close(&f, &err);
}

static void test_odd(void)
{
    const char *fmt = "pretrain tokens";
    const struct odd cases[] = {
        { U16, I64, 40, 3, 40, 257, 256, 1, { 0, 5, 9 }, fmt, NULL },
        { I32, I64, 40, 3, 40, 257, 256, 1, { 0, 5, 9 }, fmt, "not uint16 or uint32" },
        { U16, I32, 40, 3, 40, 257, 256, 1, { 0, 5, 9 }, fmt, "/documents is int32" },
        { U16, I64, 7, 3, 7, 257, 256, 1, { 0, 1, 2 }, fmt, "not a list" },
        { U16, I64, 40, 3, 41, 257, 256, 1, { 0, 5, 9 }, fmt, "attributes say 41" },
        { U16, I64, 40, 3, 40, 0, -1, 1, { 0, 5, 9 }, fmt, "vocabulary size 0" },
        { U16, I64, 40, 3, 40, 257, 257, 1, { 0, 5, 9 }, fmt, "end-of-document id 257" },
        { U16, I64, 40, 3, 40, 257, 256, 2, { 0, 5, 9 }, fmt, "version 2" },
        { U16, I64, 40, 3, 40, 257, 256, 1, { 1, 5, 9 }, fmt, "document 0 starts at token 1" },
        { U16, I64, 40, 3, 40, 257, 256, 1, { 0, 5, 5 }, fmt, "document 2 starts at token 5" },
        { U16, I64, 40, 3, 40, 257, 256, 1, { 0, 5, 40 }, fmt, "below 40" },
        { U16, I64, 40, 3, 40, 257, 256, 1, { 0, -5, 9 }, fmt, "document 1 starts at token -5" },
        { U16, I64, 40, 3, 40, 257, 256, 1, { 0, 5, 9 }, "something else", "not a token file" },
    };
    struct tokens t;

    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *path = path_of("odd.h5");

        odd_make(path, &cases[i]);
        tap_ok(cases[i].message ? fails(tokens_open(&t, path, &err), cases[i].message)
                                : holds(tokens_open(&t, path, &err)) && t.ndocuments == 3,
               "%s", cases[i].message ? cases[i].message : "a file by another writer");
        tokens_close(&t);
    }
}

/* ---- names ---- */

static void test_names(void)
{
    char names[][300] = { "a b.h5", "it's.h5", "x=1,y.h5", "uni-\xc3\xa4.h5", "~", "" };
    struct tokens t;

    memset(names[5], 'n', 250);
    for (int i = 0; i < COUNT_OF(names); i++)
        tap_ok(holds(write_file(path_of(names[i]), 100, 257, NULL)) &&
                   holds(tokens_open(&t, path_of(names[i]), &err)) && reads_back(&t, 100, 257) &&
                   (tokens_close(&t), 1),
               "the name %.20s", names[i]);
}

/* Written, not only read: 4.4 GB. */
static void test_large(void)
{
    const int64_t n = 2200000000;
    struct tokens t;
    int32_t id = 0;

    if (!tap_soak()) {
        tap_skip(1, "large file: make soak");
        return;
    }
    tap_ok(holds(write_file(path_of("large.h5"), n, 251, NULL)) &&
               holds(tokens_open(&t, path_of("large.h5"), &err)) && t.count == n &&
               holds(tokens_check(&t, &(int64_t){ 0 }, &err)) &&
               holds(tokens_read(&t, n - 1, 1, &id, &err)) && id == (int32_t)id_at(n - 1, 251),
           "2.2e9 tokens written and checked");
    tokens_close(&t);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    tap_plan(73);
    test_round_trip();
    test_wrap();
    test_documents();
    test_writer();
    test_full();
    test_foreign();
    test_truncated();
    test_damaged();
    test_damaged_tokens();
    test_odd();
    test_names();
    test_large();
    file_remove_tree(dir, NULL);
    return tap_done();
}
