/* The numbered samples: counts, contents, order, masks. */
#include "data/sampler.h"

#include <jansson.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "store/h5.h"
#include "tests/tap.h"

enum { ROOM = 4096 };

static char dir[64] = "/tmp/pretrain-sampler.XXXXXX";
static struct err err;

static const char *path_of(const char *name)
{
    static char path[4][128];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* Tokens at(i), documents at starts. */
static void make(const char *path, int64_t n, int64_t vocab, int64_t eod, const int64_t *starts,
                 int64_t nstarts, uint32_t (*at)(int64_t))
{
    struct tokens_writer *w;
    int64_t d = 0;

    tokens_writer_open(&w, path, vocab, eod, NULL, 0, &err);
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = at(i);

        if (d < nstarts && starts[d] == i) {
            tokens_writer_document(w);
            d++;
        }
        tokens_writer_add(w, &id, 1, &err);
    }
    if (tokens_writer_close(w, &err) != OK)
        printf("# %s\n", err.text);
}

static uint32_t count_up(int64_t i)
{
    return (uint32_t)i;
}

static uint32_t mod_251(int64_t i)
{
    return (uint32_t)(i % 251);
}

struct rows {
    struct batch_rows b;
    int32_t ids[ROOM], labels[ROOM], place[ROOM], start[ROOM], position[ROOM];
};

static struct rows *rows_new(void)
{
    struct rows *r = mem_take(sizeof *r);

    r->b = (struct batch_rows){ r->ids, r->labels, r->place, r->start, r->position };
    return r;
}

/* ---- contents ---- */

/* Sample k of one file, without masks: inputs kS .., labels one further. */
static int plain_sample_is_right(const struct corpus *c, struct rows *r, int row, int64_t k,
                                 int64_t first, uint32_t (*at)(int64_t))
{
    int64_t S = c->S, o = row * S;

    if (batch_fill(c, &r->b, row, k, 0, 0, &err) != OK)
        return 0;
    for (int64_t t = 0; t < S; t++)
        if (r->ids[o + t] != (int32_t)at(first + t) ||
            r->labels[o + t] != (int32_t)at(first + t + 1) || r->place[o + t] != t ||
            r->position[o + t] != t || r->start[o + t] != 0)
            return 0;
    return 1;
}

static void test_counts(struct rows *r)
{
    static const struct {
        int64_t n, samples;
    } cases[] = { { 9, 1 }, { 64, 7 }, { 65, 8 }, { 66, 8 }, { 72, 8 }, { 73, 9 } };

    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *path = path_of("count.h5");
        struct corpus c;
        int good = 1;

        make(path, cases[i].n, 100, -1, NULL, 0, count_up);
        tap_ok(corpus_open(&c, &path, 1, 8, NULL, &err) == OK && c.samples == cases[i].samples,
               "%lld tokens are %lld samples of 8", (long long)cases[i].n,
               (long long)cases[i].samples);
        for (int64_t k = 0; k < c.samples; k++)
            good &= plain_sample_is_right(&c, r, (int)(k % 3), k, 8 * k, count_up);
        tap_ok(good, "of %lld tokens every sample has tokens 8k .. 8k+8", (long long)cases[i].n);
        corpus_close(&c);
    }
}

static void test_too_small(void)
{
    const char *path = path_of("small.h5");
    struct corpus c;

    make(path, 8, 100, -1, NULL, 0, count_up);
    err.text[0] = '\0';
    tap_ok(corpus_open(&c, &path, 1, 8, NULL, &err) == E_FILE, "8 tokens are no sample of 8");
    tap_ok(strstr(err.text, "8 tokens") && strstr(err.text, "sequence_length = 8"), "%s", err.text);
    err.text[0] = '\0';
}

static void test_empty_row(struct rows *r)
{
    const char *path = path_of("count.h5");
    struct corpus c;
    int good = corpus_open(&c, &path, 1, 8, NULL, &err) == OK &&
               batch_fill(&c, &r->b, 1, -1, 1, 1, &err) == OK;

    for (int t = 8; t < 16; t++)
        good &= r->ids[t] == 0 && r->labels[t] == -1 && r->position[t] == t - 8 && r->start[t] == 0;
    tap_ok(good, "a row without a sample does not count");
    corpus_close(&c);
}

/* ---- several files ---- */

static uint32_t count_from_40(int64_t i)
{
    return (uint32_t)(40 + i);
}

static void test_files(struct rows *r)
{
    const char *paths[] = { path_of("one.h5"), path_of("two.h5"), path_of("three.h5") };
    struct corpus c;
    int good = 1;

    make(paths[0], 33, 100, 99, NULL, 0, count_up);      /* 4 samples */
    make(paths[1], 8, 100, 99, NULL, 0, count_up);       /* none      */
    make(paths[2], 18, 100, 99, NULL, 0, count_from_40); /* 2 samples */
    tap_ok(corpus_open(&c, paths, 3, 8, NULL, &err) == OK && c.samples == 6 && c.count == 59,
           "three files, one too short for a sample: 6 samples of 59 tokens");
    for (int64_t k = 0; k < 4; k++)
        good &= plain_sample_is_right(&c, r, 0, k, 8 * k, count_up);
    for (int64_t k = 4; k < 6; k++)
        good &= plain_sample_is_right(&c, r, 0, k, 8 * (k - 4), count_from_40);
    tap_ok(good, "samples never cross files");
    corpus_close(&c);
}

static void test_mismatch(void)
{
    const char *paths[] = { path_of("one.h5"), path_of("other.h5") };
    struct corpus c;

    make(paths[1], 33, 101, 99, NULL, 0, count_up);
    err.text[0] = '\0';
    tap_ok(corpus_open(&c, paths, 2, 8, NULL, &err) == E_FILE &&
               strstr(err.text, "vocabulary size 101"),
           "%s", err.text);
    make(paths[1], 33, 100, 98, NULL, 0, count_up);
    err.text[0] = '\0';
    tap_ok(corpus_open(&c, paths, 2, 8, NULL, &err) == E_FILE &&
               strstr(err.text, "end-of-document id 98"),
           "%s", err.text);
    err.text[0] = '\0';
}

static void test_hash(void)
{
    const char *ab[] = { path_of("one.h5"), path_of("two.h5") }, *ba[] = { ab[1], ab[0] };
    struct corpus c, d, again;

    corpus_open(&c, ab, 2, 8, NULL, &err);
    corpus_open(&d, ba, 2, 8, NULL, &err);
    corpus_open(&again, ab, 2, 16, NULL, &err);
    tap_ok(strcmp(c.hash, d.hash) && !strcmp(c.hash, again.hash) && strlen(c.hash) == 32,
           "the corpus hash depends on the files and their order only");
    corpus_close(&c);
    corpus_close(&d);
    corpus_close(&again);
}

/* ---- order ---- */

static int is_permutation(const struct corpus *c, uint64_t seed, int64_t epoch)
{
    char *seen = mem_take((size_t)c->samples);
    int good = 1;

    for (int64_t i = 0; i < c->samples; i++) {
        int64_t k = sampler_index(c, seed, 1, epoch * c->samples + i);

        if (k < 0 || k >= c->samples || seen[k]++)
            good = 0;
    }
    mem_give(seen);
    return good;
}

static int same_places(const struct corpus *c, uint64_t seed1, int64_t n1, uint64_t seed2,
                       int64_t n2)
{
    int same = 0;

    for (int64_t i = 0; i < c->samples; i++)
        same += sampler_index(c, seed1, 1, n1 + i) == sampler_index(c, seed2, 1, n2 + i);
    return same;
}

static void test_order(void)
{
    static const int64_t sizes[] = { 1, 2, 3, 64, 97, 1000, 4097 };
    struct corpus c = { .S = 8 };
    int good = 1, straight = 1;

    for (int s = 0; s < COUNT_OF(sizes); s++) {
        c.samples = sizes[s];
        for (int64_t epoch = 0; epoch < 4; epoch++)
            good &= is_permutation(&c, 42, epoch) && is_permutation(&c, 7, epoch + 5000000000);
        for (int64_t n = 0; n < 3 * c.samples; n++)
            straight &= sampler_index(&c, 42, 0, n) == n % c.samples;
    }
    tap_ok(good, "every epoch visits every sample once");
    tap_ok(straight, "without shuffling: file order, epoch after epoch");
    c.samples = 1000;
    tap_ok(same_places(&c, 42, 0, 42, 1000) < 20, "epochs differ in order");
    tap_ok(same_places(&c, 42, 0, 43, 0) < 20, "seeds differ in order");
    tap_ok(same_places(&c, 42, 0, 42, 0) == 1000, "the same seed and number give the same sample");
    tap_ok(sampler_index(&c, 1, 0, 1000000LL * 4096 + 17) == 17,
           "sample numbers above 2^31 (a million steps of 4,096)");
}

/* ---- masks ---- */

/* The definition, token by token. */
static int masked_row_is_right(const struct tokens *f, const struct rows *r, int64_t first,
                               int64_t S, int seams)
{
    for (int64_t t = 0; t < S; t++) {
        int64_t begin = 0, label_is_first = 0, start;

        for (int64_t d = 0; d < f->ndocuments; d++) {
            if (tokens_first(f, d) <= first + t)
                begin = tokens_first(f, d);
            label_is_first |= tokens_first(f, d) == first + t + 1;
        }
        start = (begin > first ? begin : first) - first;
        if (r->start[t] != start || r->position[t] != t - start || r->place[t] != t ||
            r->ids[t] != (int32_t)mod_251(first + t) ||
            r->labels[t] != (seams && label_is_first ? -1 : (int32_t)mod_251(first + t + 1)))
            return 0;
    }
    return 1;
}

static void test_masks(struct rows *r)
{
    const char *path = path_of("masks.h5");
    int64_t starts[200], n = 0;
    uint64_t x = 12345;
    struct corpus c;
    int good[2] = { 1, 1 }, plain = 1;

    for (int64_t at = 0; at < 1500; n++) { /* lengths 1 .. 40; several of one token */
        starts[n] = at;
        x = x * 6364136223846793005u + 1442695040888963407u;
        at += 1 + (int64_t)(x >> 33) % ((x >> 40) % 3 ? 40 : 2);
    }
    make(path, 1500, 251, -1, starts, n, mod_251);
    corpus_open(&c, &path, 1, 32, NULL, &err);
    tap_ok(c.file[0].ndocuments == n, "%lld documents", (long long)n);
    for (int64_t k = 0; k < c.samples; k++) {
        for (int seams = 0; seams < 2; seams++)
            good[seams] &= batch_fill(&c, &r->b, 0, k, 1, seams, &err) == OK &&
                           masked_row_is_right(&c.file[0], r, 32 * k, 32, seams);
        plain &= plain_sample_is_right(&c, r, 0, k, 32 * k, mod_251);
    }
    tap_ok(good[1], "document mask with masked seams, as defined");
    tap_ok(good[0], "document mask without masked seams, as defined");
    tap_ok(plain, "no mask: documents are not seen");
    corpus_close(&c);
}

/* ---- golden runs: the counted labels of every step ---- */

static void golden_path(char *out, size_t room, const char *name, const char *file)
{
    const char *src = getenv("srcdir");

    snprintf(out, room, "%s/tests/golden/%s/%s", src ? src : ".", name, file);
}

static void golden_make(const char *name, const json_t *j)
{
    char path[512], *text;
    int64_t *starts, eod = json_integer_value(json_object_get(j, "end_of_document"));
    size_t n, bytes;
    struct tokens_writer *w;

    golden_path(path, sizeof path, name, "documents.i64");
    file_read_text(path, 1 << 20, (char **)&starts, &bytes, &err);
    golden_path(path, sizeof path, name, "tokens.u16");
    file_read_text(path, 1 << 20, &text, &n, &err);
    tokens_writer_open(&w, path_of("golden.h5"), eod + 1, eod, NULL, 0, &err);
    for (size_t i = 0, d = 0; i < n / 2; i++) {
        uint32_t id = ((uint16_t *)(void *)text)[i];

        if (d < bytes / 8 && starts[d] == (int64_t)i && ++d)
            tokens_writer_document(w);
        tokens_writer_add(w, &id, 1, &err);
    }
    tokens_writer_close(w, &err);
    mem_give(starts);
    mem_give(text);
}

static int golden_counts(const json_t *j, struct rows *r)
{
    const json_t *steps = json_object_get(j, "float64");
    int64_t batch = json_integer_value(json_object_get(j, "global_batch"));
    int mask = json_is_true(json_object_get(j, "document_mask")), good = 1;
    const char *path = path_of("golden.h5");
    struct corpus c;

    if (corpus_open(&c, &path, 1, json_integer_value(json_object_get(j, "sequence_length")), NULL,
                    &err) != OK)
        return 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        int64_t counted = 0;

        for (int64_t n = 0; n < batch; n++) {
            int64_t k = sampler_index(&c, 42, 0, (int64_t)i * batch + n);

            good &= batch_fill(&c, &r->b, 0, k, mask, 1, &err) == OK;
            for (int64_t t = 0; t < c.S; t++)
                counted += r->labels[t] >= 0;
        }
        good &= counted ==
                json_integer_value(json_object_get(json_array_get(steps, i), "valid_tokens"));
    }
    corpus_close(&c);
    return good && json_array_size(steps) == 10;
}

static void test_golden(struct rows *r)
{
    static const char *const names[] = { "five", "gqa", "llama3", "qwen2", "qwen3", "tied" };

    for (int i = 0; i < COUNT_OF(names); i++) {
        char path[512];
        json_t *j;

        golden_path(path, sizeof path, names[i], "expected.json");
        j = json_load_file(path, 0, NULL);
        if (j)
            golden_make(names[i], j);
        tap_ok(j && golden_counts(j, r), "golden %s: counted labels of ten steps", names[i]);
        json_decref(j);
    }
}

/* ---- more than 2^31 tokens ---- */

static const int64_t BIG = 2200000000;
static const int64_t places[] = { 0,         1 << 30,         (1LL << 31) - 8,
                                  1LL << 31, (1LL << 31) + 8, 2200000000 - 16 };

/* All holes but for windows around the places, written where HDF5 put the array. */
static int big_make(const char *path)
{
    static const int64_t starts[] = { 0, (1LL << 31) - 4, (1LL << 31) + 2 };
    int64_t at, documents, ndocuments = 3, vocab = 251, eod = -1, version = 1;
    struct h5 *h;
    struct file f;
    enum status st = h5_create(&h, path, 1 << 20, 0, &err);

    if (st != OK)
        return 0;
    st = h5_dataset(h, "/tokens", U16, 1, &BIG, &at, &err);
    st |= h5_dataset(h, "/documents", I64, 1, &ndocuments, &documents, &err);
    st |= h5_set_text(h, "/", "format", "pretrain tokens", &err);
    st |= h5_set_text(h, "/", "tokens_xxh3", "00000000000000000000000000000000", &err);
    st |= h5_set_i64(h, "/", "format_version", &version, 1, &err);
    st |= h5_set_i64(h, "/", "vocab_size", &vocab, 1, &err);
    st |= h5_set_i64(h, "/", "end_of_document", &eod, 1, &err);
    st |= h5_set_i64(h, "/", "ntokens", &BIG, 1, &err);
    st |= h5_set_i64(h, "/", "ndocuments", &ndocuments, 1, &err);
    st |= h5_close(h, &err);
    st |= file_open(&f, path, FILE_UPDATE, &err);
    st |= file_write_at(&f, starts, sizeof starts, documents, &err);
    for (int i = 0; i < COUNT_OF(places); i++) {
        uint16_t window[16];

        for (int k = 0; k < 16; k++)
            window[k] = (uint16_t)mod_251(places[i] + k);
        st |= file_write_at(&f, window, sizeof window, at + 2 * places[i], &err);
    }
    st |= file_close(&f, &err);
    return st == OK;
}

static void test_big(struct rows *r)
{
    const char *path = path_of("big.h5");
    struct corpus c;
    int good = big_make(path);

    if (!tap_ok(good && corpus_open(&c, &path, 1, 8, NULL, &err) == OK && c.samples == 274999999,
                "a file of 2.2e9 tokens: 274,999,999 samples")) {
        printf("# %s\n", err.text);
        tap_skip(2, "no such file");
        return;
    }
    for (int i = 0; i < COUNT_OF(places); i++) /* the last sample ends 8 tokens before the end */
        good &= plain_sample_is_right(&c, r, 0, places[i] / 8, places[i], mod_251);
    tap_ok(good, "sample contents at 0, 2^30, 2^31 - 8, 2^31, 2^31 + 8 and the end");
    good = batch_fill(&c, &r->b, 0, (1 << 28) - 1, 1, 1, &err) == OK && r->start[3] == 0 &&
           r->labels[3] == -1 && r->start[4] == 4 && r->position[7] == 3;
    tap_ok(good, "documents beside 2^31");
    corpus_close(&c);
    file_remove(path, NULL);
}

int main(void)
{
    struct rows *r = rows_new();

    if (!mkdtemp(dir))
        return 1;
    tap_plan(39);
    test_counts(r);
    test_too_small();
    test_empty_row(r);
    test_files(r);
    test_mismatch();
    test_hash();
    test_order();
    test_masks(r);
    test_golden(r);
    test_big(r);
    file_remove_tree(dir, NULL);
    mem_give(r);
    return tap_done();
}
