/* A checkpoint of any layout becomes the same model; types, shards, companions, what may be
 * replaced. */
#include "convert/export.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "compute/choose.h"
#include "hf/hf_config.h"
#include "hf/safetensors.h"
#include "parallel/comm_mpi.h"
#include "store/h5.h"
#include "tests/checkpoint_scene.h"
#include "tests/tap.h"

#include <sys/stat.h>

static char dir[256];
static struct grid grid = { .ranks = 1, .tp = 1, .cp = 1, .dp = 1, .pp = 1 };
static struct queue *queue;
static const char tokenizer[] =
    "{\"added_tokens\":[{\"id\":12,\"content\":\"<end>\"}],\"model\":{\"vocab\":{\"a\":0}}}";

static const char *path_of(const char *name)
{
    static char path[4][600];
    static int k;

    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

/* big >= 0: that element of the embedding is 70000 */
static void save(const char *run, const struct layout *l, enum dtype t, int big, int with_tokenizer)
{
    struct scene s = scene_whole(l, t);
    struct checkpoint_scalars scalars = { 3, 96, 3072, 3, 2, { 1024, 3, 1 }, 1 };
    struct checkpoint_texts texts = { scene_deck, with_tokenizer ? tokenizer : NULL,
                                      with_tokenizer ? sizeof tokenizer - 1 : 0, 12, "abc" };
    struct err e = { "" };

    scene_fill(&s, 0);
    if (big >= 0)
        scene_put(s.piece[0].master, big, 70000);
    if (checkpoint_save(path_of(run), &grid, &ops_ref, queue, NULL, s.piece, s.n, &scalars, &texts,
                        &e) != OK)
        printf("# %s\n", e.text);
    scene_free(&s);
}

static enum status export_to(const char *run, const char *out, int hdf5, int dtype, int with,
                             int64_t most, struct err *e)
{
    char place[600];
    struct export_options o = { place, path_of(out), hdf5, dtype, with, most };

    snprintf(place, sizeof place, "%s/%s/step_00000003", dir, run);
    e->text[0] = 0;
    return export_model(&o, e);
}

static int same_file(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n, m;
    int same = file_read_text(path_of(a), 1 << 24, &x, &n, NULL) == OK &&
               file_read_text(path_of(b), 1 << 24, &y, &m, NULL) == OK && n == m &&
               memcmp(x, y, n) == 0;

    mem_give(x);
    mem_give(y);
    return same;
}

/* Every weight in the folder is what the scene says, rounded to the type. */
static int values_hold(const char *out, enum dtype t)
{
    struct params ps;
    struct dims d = scene_dims(1);
    struct st_model m;
    struct err e = { "" };
    int good = st_open(&m, path_of(out), &e) == OK, tensors = good ? m.n : 0;

    params_build_whole(&ps, &d);
    for (int i = 0; i < ps.n && good; i++) {
        const struct st_tensor *f = st_find(&m, ps.p[i].name);
        struct box b = box_whole(ps.p[i].nd, ps.p[i].global);
        int64_t n = box_count(&b);
        double *x = mem_take((size_t)n * 8);

        good = f && f->dtype == t && f->nd == b.nd && st_read_box(&m, f, &b, x, F64, &e) == OK;
        for (int64_t k = 0; k < n && good; k++) {
            double want = (double)(float)scene_value(0, ps.p[i].number, k, 0), back;
            char bytes[8];

            dtype_convert(bytes, t, &want, F64, 1);
            dtype_convert(&back, F64, bytes, t, 1);
            good = x[k] == back;
        }
        mem_give(x);
    }
    if (!good)
        printf("# %s\n", e.text);
    good &= tensors == ps.n;
    if (tensors)
        st_close(&m);
    params_free(&ps);
    return good;
}

static void test_folders(void)
{
    static const struct {
        const char *out;
        int asked;
        enum dtype is;
    } types[] = { { "own", -1, F32 },
                  { "f32", F32, F32 },
                  { "bf16", BF16, BF16 },
                  { "f16", F16, F16 },
                  { "f64", F64, F64 } };
    struct hf_config c;
    struct err e;

    for (int i = 0; i < COUNT_OF(types); i++)
        tap_ok(export_to("a", types[i].out, 0, types[i].asked, 0, 0, &e) == OK &&
                   values_hold(types[i].out, types[i].is),
               "%s: all values, rounded to nearest even %s", types[i].out, e.text);
    tap_ok(export_to("b", "from-b", 0, -1, 0, 0, &e) == OK &&
               same_file("own/model.safetensors", "from-b/model.safetensors") &&
               same_file("own/config.json", "from-b/config.json"),
           "another layout: the same bytes %s", e.text);
    tap_ok(hf_config_read(&c, path_of("own"), &e) == OK && strcmp(c.model_type, "qwen2") == 0 &&
               c.vocab_size == 13 && c.num_key_value_heads == 2 && c.head_dim == 6 &&
               c.eos_token_id == 12 && c.bos_token_id == -1 && c.max_position_embeddings == 64 &&
               c.rope_theta == 500000 && !c.tie_word_embeddings,
           "config.json %s", e.text);
    tap_ok(file_exists(path_of("own/generation_config.json")) &&
               file_exists(path_of("own/tokenizer.json")) &&
               file_exists(path_of("own/tokenizer_config.json")) &&
               !file_exists(path_of("own.tmp-merge")),
           "companions");
    tap_ok(export_to("c", "bare", 0, -1, 0, 0, &e) == OK &&
               !file_exists(path_of("bare/tokenizer.json")) &&
               !file_exists(path_of("bare/tokenizer_config.json")) &&
               hf_config_read(&c, path_of("bare"), &e) == OK && c.eos_token_id == 12,
           "without a tokenizer its files are left out %s", e.text);
    tap_ok(export_to("a", "shards", 0, -1, 0, 2000, &e) == OK &&
               !file_exists(path_of("shards/model.safetensors")) &&
               file_exists(path_of("shards/model.safetensors.index.json")) &&
               values_hold("shards", F32),
           "several files and an index %s", e.text);
}

static void test_replacing(void)
{
    struct err e;

    tap_ok(export_to("a", "own", 0, -1, 0, 2000, &e) == OK &&
               !file_exists(path_of("own/model.safetensors")) &&
               !file_exists(path_of("own.old-merge")),
           "an earlier export is replaced whole %s", e.text);
    tap_ok(export_to("a", "own/", 0, -1, 0, 0, &e) == OK &&
               file_exists(path_of("own/model.safetensors")),
           "a slash at the end %s", e.text);
    file_write_whole(path_of("own/notes.txt"), "x", 1, NULL);
    tap_ok(export_to("a", "own", 0, -1, 0, 0, &e) == E_INPUT && strstr(e.text, "notes.txt") &&
               file_exists(path_of("own/notes.txt")),
           "a folder with another file is refused");
    file_remove(path_of("own/notes.txt"), NULL);
    file_remove(path_of("own/pretrain-export.json"), NULL);
    tap_ok(export_to("a", "own", 0, -1, 0, 0, &e) == E_INPUT, "somebody's model folder is refused");
    file_make_dirs(path_of("empty"), NULL);
    tap_ok(export_to("a", "empty", 0, -1, 0, 0, &e) == OK && values_hold("empty", F32),
           "an empty folder is filled %s", e.text);
    file_write_whole(path_of("file"), "x", 1, NULL);
    tap_ok(export_to("a", "file", 0, -1, 0, 0, &e) == E_INPUT,
           "a file in the folder's place is refused");
    tap_ok(export_to("a", "file", 1, -1, 0, 0, &e) == E_INPUT, "a foreign file is refused");
    tap_ok(export_to("a", "empty", 1, -1, 0, 0, &e) == E_INPUT,
           "a folder in the file's place is refused");
    tap_ok(export_to("a", "x", 0, -1, 1, 0, &e) == E_INPUT && strstr(e.text, "hdf5"),
           "moments go into HDF5 only");
    tap_ok(export_to("nothing", "x", 0, -1, 0, 0, &e) == E_FILE && !file_exists(path_of("x")),
           "no such checkpoint: %s", e.text);
    tap_ok(export_to("a", "deep/er/model", 0, -1, 0, 0, &e) == OK, "folders above are made %s",
           e.text);
}

static void test_overflow(void)
{
    struct err e;

    tap_ok(export_to("big", "o", 0, F16, 0, 0, &e) == E_NUMERIC &&
               strstr(e.text, "model.embed_tokens.weight[1, 5]") && strstr(e.text, "float16"),
           "a float16 overflow is named: %s", e.text);
    tap_ok(!file_exists(path_of("o")) && !file_exists(path_of("o.tmp-merge")),
           "and nothing is left");
    tap_ok(export_to("big", "o", 0, BF16, 0, 0, &e) == OK, "bfloat16 holds it %s", e.text);
}

static int dataset_holds(const char *file, const char *name, int kind, int number, enum dtype t)
{
    struct h5 *f = NULL;
    struct file raw;
    struct err e = { "" };
    enum dtype is;
    int64_t shape[BOX_MAX], offset, n = 1;
    int nd, good = h5_open(&f, path_of(file), &e) == OK &&
                   h5_find(f, name, &is, &nd, shape, &offset, &e) == OK && is == t;

    h5_close(f, NULL);
    if (!good) {
        printf("# %s\n", e.text);
        return 0;
    }
    for (int d = 0; d < nd; d++)
        n *= shape[d];
    file_open(&raw, path_of(file), FILE_READ, NULL);
    for (int64_t i = 0; i < n && good; i++) {
        double want = (double)(float)scene_value(kind, number, i, 0);
        char bytes[8], have[8];
        size_t size = dtype_size(t);

        dtype_convert(bytes, t, &want, F64, 1);
        file_read_at(&raw, have, size, offset + i * (int64_t)size, NULL);
        good = memcmp(bytes, have, size) == 0;
    }
    file_close(&raw, NULL);
    return good;
}

static void test_hdf5(void)
{
    struct err e;

    tap_ok(
        export_to("b", "m.h5", 1, -1, 1, 0, &e) == OK &&
            dataset_holds("m.h5", "/weights/model.embed_tokens.weight", 0, 0, F32) &&
            dataset_holds("m.h5", "/exp_avg/model.embed_tokens.weight", 1, 0, F32) &&
            dataset_holds("m.h5", "/exp_avg_sq/model.layers.0.input_layernorm.weight", 2, 1, F32),
        "HDF5 with moments %s", e.text);
    tap_ok(export_to("b", "m.h5", 1, BF16, 1, 0, &e) == OK &&
               dataset_holds("m.h5", "/weights/model.embed_tokens.weight", 0, 0, BF16) &&
               dataset_holds("m.h5", "/exp_avg/model.embed_tokens.weight", 1, 0, F32),
           "replaced; moments keep their type %s", e.text);
    tap_ok(export_to("a", "n.h5", 1, F64, 0, 0, &e) == OK &&
               dataset_holds("n.h5", "/weights/model.embed_tokens.weight", 0, 0, F64) &&
               !file_exists(path_of("n.h5.tmp-merge")),
           "float64 without moments %s", e.text);
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    const struct layout one = { 1, 1, 1, 1 << 20 }, many = { 4, 2, 3, 29 };
    struct err e = { "" };

    grid.world = comm_mpi_start(&argc, &argv);
    if (ops_ref.queue_create(&queue, 1, 0, &e) != OK)
        return 99;
    snprintf(dir, sizeof dir, "%.200s/pretrain-ex-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 99;
    log_speaker(0);
    tap_plan(5 + 5 + 11 + 3 + 3);
    save("a", &one, F32, -1, 1);
    save("b", &many, F32, -1, 1);
    save("c", &one, F32, -1, 0);
    save("big", &one, F32, 17, 1);
    test_folders();
    test_replacing();
    test_overflow();
    test_hdf5();
    file_remove_tree(dir, NULL);
    ops_ref.queue_free(queue);
    comm_mpi_end(grid.world);
    return tap_done();
}
