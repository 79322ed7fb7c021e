/* Save and load in one process: every layout to every layout, digests, damage, retention. */
#include "checkpoint/checkpoint.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "compute/choose.h"
#include "parallel/comm_mpi.h"
#include "tests/checkpoint_scene.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[256];
static struct grid grid = { .ranks = 1, .tp = 1, .cp = 1, .dp = 1, .pp = 1 };
static struct queue *queue;

static const struct layout layouts[] = {
    { 1, 1, 1, 1 << 20 }, { 1, 1, 3, 71 }, { 2, 1, 2, 41 }, { 4, 2, 1, 23 },
    { 2, 3, 2, 1 << 20 }, { 1, 2, 2, 97 }, { 4, 1, 3, 64 },
};

static const char *path_of(const char *name)
{
    static char path[4][600];
    static int k;

    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static enum status save(const char *run, const struct scene *s, int64_t step, struct err *e)
{
    struct checkpoint_scalars scalars = {
        step, step * 32, step * 1024, step, 2, { 1024, 3, 1 }, 1
    };
    struct checkpoint_texts texts = { "&run\n/\n", "{\"a\":1}", 7, 12,
                                      "0123456789abcdef0123456789abcdef" };

    e->text[0] = 0;
    return checkpoint_save(path_of(run), &grid, &ops_ref, queue, NULL, s->piece, s->n, &scalars,
                           &texts, e);
}

static int digest(const char *path, char out[33])
{
    struct checkpoint c;
    struct err e = { "" };
    int good = checkpoint_open(&c, path_of(path), &e) == OK;

    if (good) {
        good = checkpoint_digest(&c, out, &e) == OK;
        checkpoint_close(&c);
    }
    if (!good)
        printf("# %s\n", e.text);
    return good;
}

/* ---- every layout to every layout ---- */

static int loads_into(const char *path, const struct layout *l, enum dtype t, struct err *e)
{
    struct scene s = scene_whole(l, t);
    struct checkpoint c;
    int good = checkpoint_open(&c, path_of(path), e) == OK;

    if (good) {
        good = checkpoint_load(&c, &ops_ref, queue, s.piece, s.n, e) == OK && scene_holds(&s, 0);
        checkpoint_close(&c);
    }
    scene_free(&s);
    return good;
}

static void test_layouts(enum dtype t, const char *run)
{
    char first[33] = "", other[33] = "";
    struct err e;

    for (int i = 0; i < COUNT_OF(layouts); i++) {
        const struct layout *l = &layouts[i];
        struct scene s = scene_whole(l, t);
        char name[64], place[96];
        int good = 1;

        snprintf(name, sizeof name, "%s%d", run, i);
        snprintf(place, sizeof place, "%s/step_00000003", name);
        scene_fill(&s, 0);
        tap_ok(save(name, &s, 3, &e) == OK, "tp %d pp %d dp %d cut %lld %s: saved %s", l->tp, l->pp,
               l->dp, (long long)l->cut, dtype_name(t), e.text);
        scene_free(&s);
        tap_ok(digest(place, other) && (i == 0 || strcmp(first, other) == 0),
               "the digest does not see the layout");
        if (i == 0)
            strcpy(first, other);
        for (int k = 0; k < COUNT_OF(layouts); k++)
            good &= loads_into(place, &layouts[k], t, &e);
        tap_ok(good, "loads into every layout %s", e.text);
    }
}

static void test_contents(void)
{
    struct checkpoint c;
    struct err e = { "" };
    int64_t shape[3];
    enum dtype t;
    struct box what = { .nd = 2, .off = { 3, 5 }, .ext = { 7, 4 } };
    double x[28];
    int good = 1;

    tap_ok(checkpoint_open(&c, path_of("f3/step_00000003/"), &e) == OK, "opens %s", e.text);
    tap_ok(c.scalars.step == 3 && c.scalars.samples == 96 && c.scalars.tokens == 3072 &&
               c.scalars.adam_t == 3 && c.scalars.attempt == 2 && c.scalars.zero_stage == 1 &&
               c.scalars.loss.scale == 1024 && c.scalars.loss.good == 3 &&
               c.scalars.loss.tolerance == 1 && c.eod == 12 && c.dp == 1 && c.ranks == 1 &&
               strcmp(c.data_hash, "0123456789abcdef0123456789abcdef") == 0,
           "scalars and layout");
    tap_ok(c.input_nml && strcmp(c.input_nml, "&run\n/\n") == 0 && c.tokenizer_bytes == 7 &&
               memcmp(c.tokenizer_json, "{\"a\":1}", 7) == 0,
           "texts");
    tap_ok(checkpoint_shape(&c, CHECKPOINT_EXP_AVG, "model.embed_tokens.weight", shape, &t) == 2 &&
               shape[0] == 13 && shape[1] == 12 && t == F32 &&
               !checkpoint_shape(&c, CHECKPOINT_EXP_AVG, "nothing", shape, &t),
           "shapes are global and unpadded");
    tap_ok(checkpoint_read_box(&c, CHECKPOINT_EXP_AVG_SQ, "model.embed_tokens.weight", &what, x,
                               F64, &e) == OK,
           "a box in another type %s", e.text);
    for (int i = 0; i < 28; i++)
        good &= x[i] == (double)(float)scene_value(2, 0, (3 + i / 4) * 12 + 5 + i % 4, 0);
    tap_ok(good, "holds the right values");
    tap_ok(checkpoint_read_box(&c, CHECKPOINT_WEIGHTS, "nothing", &what, x, F64, &e) == E_FILE &&
               strstr(e.text, "nothing"),
           "an absent tensor");
    checkpoint_close(&c);
}

static void test_other_model(void)
{
    struct scene s = scene_whole(&layouts[0], F32);
    struct checkpoint c;
    struct err e = { "" };

    s.ps[0].p[0].global[0]++;
    tap_ok(checkpoint_open(&c, path_of("f0/step_00000003"), &e) == OK &&
               checkpoint_load(&c, &ops_ref, queue, s.piece, s.n, &e) == E_FILE &&
               strstr(e.text, "[13, 12]") && strstr(e.text, "[14, 12]"),
           "another shape is refused with both: %s", e.text);
    s.ps[0].p[0].global[0]--;
    strcpy(s.ps[0].p[1].name, "model.layers.9.input_layernorm.weight");
    e.text[0] = 0;
    tap_ok(checkpoint_load(&c, &ops_ref, queue, s.piece, s.n, &e) == E_FILE &&
               strstr(e.text, "layers.9"),
           "an absent tensor is refused: %s", e.text);
    checkpoint_close(&c);
    scene_free(&s);
}

/* ---- damage ---- */

static int64_t size_of(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 ? (int64_t)s.st_size : -1;
}

static void flip(const char *path, int64_t at)
{
    struct file f;
    unsigned char b;

    file_open(&f, path, FILE_UPDATE, NULL);
    file_read_at(&f, &b, 1, at, NULL);
    b ^= 1;
    file_write_at(&f, &b, 1, at, NULL);
    file_close(&f, NULL);
}

/* Opening or reading everything must fail. */
static int is_found(const char *place, const char *match)
{
    struct scene s = scene_whole(&layouts[0], F32);
    struct checkpoint c;
    struct err e = { "" };
    enum status st = checkpoint_open(&c, path_of(place), &e);
    int found;

    if (st == OK) {
        st = checkpoint_load(&c, &ops_ref, queue, s.piece, s.n, &e);
        checkpoint_close(&c);
    }
    scene_free(&s);
    found = st == E_FILE && strstr(e.text, match) && strstr(e.text, "step_");
    if (!found)
        printf("# status %d: %s\n", st, e.text);
    return found;
}

static void test_damage(void)
{
    static const char *const files[] = { "d/step_00000003/rank_00000.h5",
                                         "d/step_00000003/index.h5" };
    struct scene s = scene_whole(&layouts[5], F32);
    struct file f;
    struct err e;
    int missed = 0, flips = 0;

    scene_fill(&s, 0);
    save("d", &s, 3, &e);
    for (int k = 0; k < 2; k++) {
        int64_t size = size_of(path_of(files[k])), step = tap_soak() ? 1 : size / 40 + 1;

        for (int64_t at = 0; at < size; at += step, flips++) {
            flip(path_of(files[k]), at);
            missed += !is_found("d/step_00000003", "damaged");
            flip(path_of(files[k]), at);
        }
    }
    tap_ok(missed == 0, "%d flipped bits are found", flips);
    missed = flips = 0;
    for (int64_t at = 0; at < size_of(path_of("d/step_00000003/MANIFEST.json"));
         at += tap_soak() ? 1 : 173, flips++) {
        flip(path_of("d/step_00000003/MANIFEST.json"), at);
        missed += !is_found("d/step_00000003", "MANIFEST.json");
        flip(path_of("d/step_00000003/MANIFEST.json"), at);
    }
    tap_ok(missed == 0, "%d flipped bits of the manifest are found", flips);
    tap_ok(loads_into("d/step_00000003", &layouts[0], F32, &e), "all flipped back: it is good %s",
           e.text);
    file_open(&f, path_of(files[0]), FILE_UPDATE, NULL);
    file_truncate(&f, size_of(path_of(files[0])) - 1, NULL);
    file_close(&f, NULL);
    tap_ok(is_found("d/step_00000003", "rank_00000.h5"), "a truncated shard");
    file_remove(path_of(files[0]), NULL);
    tap_ok(is_found("d/step_00000003", "rank_00000.h5"), "a missing shard");
    file_remove(path_of("d/step_00000003/MANIFEST.json"), NULL);
    tap_ok(is_found("d/step_00000003", "MANIFEST.json"), "a missing manifest");
    tap_ok(is_found("d/step_00000004", "no such directory"), "a missing folder");
    file_write_whole(path_of("file"), "x", 1, NULL);
    tap_ok(is_found("f0/step_00000003/index.h5", "no such directory"),
           "a file instead of a folder");
    scene_free(&s);
}

/* A manifest whose hash is right but whose text is not. */
static int forged(const char *from, const char *to)
{
    char *text, *at;
    size_t n;
    struct hash_text h;
    FILE *out;
    int found;

    file_read_text(path_of("f2/step_00000003/MANIFEST.json"), 1 << 24, &text, &n, NULL);
    at = strstr(text, from);
    if (!at) {
        printf("# %s is not in the manifest\n", from);
        return 0;
    }
    out = fopen(path_of("forged/step_00000003/MANIFEST.json"), "w");
    *at = 0;
    n -= strlen("\"manifest_xxh3\": \"\"\n}\n") + 32;
    fprintf(out, "%s%s%.*s", text, to, (int)(n - (size_t)(at - text) - strlen(from)),
            at + strlen(from));
    fclose(out);
    mem_give(text);
    file_read_text(path_of("forged/step_00000003/MANIFEST.json"), 1 << 24, &text, &n, NULL);
    h = hash_bytes(text, n);
    out = fopen(path_of("forged/step_00000003/MANIFEST.json"), "a");
    fprintf(out, "\"manifest_xxh3\": \"%s\"\n}\n", h.s);
    fclose(out);
    mem_give(text);
    found = is_found("forged/step_00000003", "MANIFEST.json");
    return found;
}

static const char *const forgeries[][2] = {
    { "\"pretrain checkpoint\"", "\"another\"" },
    { "\"version\": 1", "\"version\": 2" },
    { "\"step\": 3", "\"step\": -3" },
    { "\"step\": 3", "\"step\": 3, \"step\": 3" },
    { "\"name\": \"rank_00000.h5\"", "\"name\": \"../rank_00000.h5\"" },
    { "\"name\": \"rank_00000.h5\"", "\"name\": \"/etc/passwd\"" },
    { "\"name\": \"rank_00000.h5\"", "\"name\": \"rank_00000.h5.h5\"" },
    { "\"kind\": \"weights\"", "\"kind\": \"biases\"" },
    { "\"shape\": [13, 12]", "\"shape\": [281474976710656, 281474976710656]" },
    { "\"shape\": [13, 12]", "\"shape\": [13, 12, 1, 1]" },
    { "\"shape\": [13, 12]", "\"shape\": [14, 12]" },
    { "\"offset\": [0, 0]", "\"offset\": [9223372036854775807, 0]" },
    { "\"extent\": [1, 5]", "\"extent\": [1, 4]" },
    { "\"extent\": [1, 5]", "\"extent\": [0, 5]" },
    { "\"extent\": [1, 5]", "\"extent\": [2, 5]" },
    { "\"file\": 1, \"at\": ", "\"file\": 1, \"at\": 9" },
    { "\"file\": 1, \"at\": ", "\"file\": 7, \"at\": " },
    { "\"dtype\": \"float32\"", "\"dtype\": \"int32\"" },
    { "\"files\": [", "\"files\": [ 1, " },
    { "\"block_bytes\": 4194304", "\"block_bytes\": 1" },
};

static void test_forged(void)
{
    file_make_dirs(path_of("forged/step_00000003"), NULL);
    tap_ok(link(path_of("f2/step_00000003/index.h5"), path_of("forged/step_00000003/index.h5")) ==
                   0 &&
               link(path_of("f2/step_00000003/rank_00000.h5"),
                    path_of("forged/step_00000003/rank_00000.h5")) == 0,
           "links");
    for (int i = 0; i < COUNT_OF(forgeries); i++)
        tap_ok(forged(forgeries[i][0], forgeries[i][1]), "refused: %s", forgeries[i][1]);
}

/* ---- names, retention ---- */

static void test_existing(void)
{
    struct scene s = scene_whole(&layouts[5], F32);
    struct err e;
    char path[4096];

    scene_fill(&s, 0);
    tap_ok(save("x", &s, 3, &e) == OK && save("x", &s, 3, &e) == OK &&
               !file_exists(path_of("x/step_00000003.tmp-2")),
           "the same state again is kept %s", e.text);
    scene_fill(&s, 1);
    tap_ok(save("x", &s, 3, &e) == E_FILE && strstr(e.text, "another state") &&
               !file_exists(path_of("x/step_00000003.tmp-2")) &&
               loads_into("x/step_00000003", &layouts[0], F32, &e),
           "another state under the same name is refused");
    flip(path_of("x/step_00000003/rank_00000.h5"),
         size_of(path_of("x/step_00000003/rank_00000.h5")) / 2);
    scene_fill(&s, 0);
    tap_ok(save("x", &s, 3, &e) == OK && file_is_dir(path_of("x/step_00000003.bad-1")) &&
               loads_into("x/step_00000003", &layouts[0], F32, &e),
           "an invalid one becomes .bad-1 %s", e.text);
    file_remove(path_of("x/step_00000003/MANIFEST.json"), NULL);
    tap_ok(save("x", &s, 3, &e) == OK && file_is_dir(path_of("x/step_00000003.bad-2")),
           "the next .bad-2 %s", e.text);
    e.text[0] = 0;
    tap_ok(checkpoint_newest(path_of("x"), path, &e) == OK &&
               strcmp(path, path_of("x/step_00000003")) == 0,
           "the newest %s", e.text);
    file_make_dirs(path_of("x/step_00000009"), NULL);
    tap_ok(checkpoint_newest(path_of("x"), path, &e) == OK &&
               strcmp(path, path_of("x/step_00000003")) == 0,
           "a bad one is passed over %s", e.text);
    tap_ok(checkpoint_newest(path_of("nowhere"), path, &e) == OK && !path[0], "no folder: none %s",
           e.text);
    file_make_dirs(path_of("y/step_00000009"), NULL);
    tap_ok(checkpoint_newest(path_of("y"), path, &e) == E_FILE && strstr(e.text, "none"),
           "only bad ones: %s", e.text);
    file_make_dirs(path_of("x/step_00000005.tmp-0/deep"), NULL);
    checkpoint_clean(path_of("x"), &grid);
    tap_ok(!file_exists(path_of("x/step_00000005.tmp-0")) &&
               file_exists(path_of("x/step_00000003")) &&
               file_exists(path_of("x/step_00000003.bad-1")),
           "stale folders are removed, nothing else");
    file_write_whole(path_of("z"), "x", 1, NULL);
    tap_ok(save("z", &s, 3, &e) == E_FILE && strstr(e.text, "/z"), "a file in the way: %s", e.text);
    scene_free(&s);
}

static int steps_are(const char *want)
{
    char have[256] = "", **names;
    int n;

    file_list(path_of("r"), &names, &n, NULL);
    for (int i = 0; i < n; i++)
        sprintf(have + strlen(have), "%ld ", strtol(names[i] + 5, NULL, 10));
    mem_give(names);
    if (strcmp(have, want))
        printf("# there are %s\n", have);
    return strcmp(have, want) == 0;
}

static void test_retention(void)
{
    struct scene s = scene_whole(&layouts[0], F32);
    struct err e = { "" };

    scene_fill(&s, 0);
    for (int step = 0; step <= 60; step += 10)
        save("r", &s, step, &e);
    tap_ok(checkpoint_retain(path_of("r"), &grid, 5, 20, &e) == OK &&
               steps_are("0 20 30 40 50 60 "),
           "keep_last 5, keep_every 20 %s", e.text);
    file_remove(path_of("r/step_00000060/MANIFEST.json"), NULL);
    tap_ok(checkpoint_retain(path_of("r"), &grid, 1, 0, &e) == OK && steps_are("50 60 "),
           "the newest good one stays, a bad one does not count and is not touched %s", e.text);
    tap_ok(checkpoint_retain(path_of("r"), &grid, 0, 0, &e) == OK && steps_are("50 60 "),
           "and never goes %s", e.text);
    scene_free(&s);
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    struct err e = { "" };

    grid.world = comm_mpi_start(&argc, &argv);
    if (ops_ref.queue_create(&queue, 1, 0, &e) != OK)
        return 99;
    snprintf(dir, sizeof dir, "%.200s/pretrain-ck-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 99;
    tap_plan(2 * 3 * COUNT_OF(layouts) + 7 + 2 + 8 + 1 + COUNT_OF(forgeries) + 10 + 3);
    test_layouts(F32, "f");
    test_layouts(F64, "g");
    test_contents();
    test_other_model();
    test_damage();
    test_forged();
    test_existing();
    test_retention();
    file_remove_tree(dir, NULL);
    ops_ref.queue_free(queue);
    comm_mpi_end(grid.world);
    return tap_done();
}
