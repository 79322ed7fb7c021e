/* Round trip, slabs against a plain copy, and headers that must be refused. */
#include "hf/safetensors.h"

#include "base/arena.h"
#include "hf/json_text.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

static char dir[256];
static char name_buf[2][512];

static const char *in_dir(const char *name)
{
    static int k;

    k = !k;
    snprintf(name_buf[k], sizeof name_buf[k], "%s/%s", dir, name);
    return name_buf[k];
}

/* A file of this header (n < 0: its own length) and `data` bytes of zeros. */
static void write_raw(const char *path, const char *header, int64_t n, int64_t data)
{
    struct err e = { { 0 } };
    struct file f;
    size_t len = strlen(header);
    uint64_t said = n < 0 ? len : (uint64_t)n;
    unsigned char b[8];

    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(said >> (8 * i));
    if (file_open(&f, path, FILE_REPLACE, &e) != OK || file_write_at(&f, b, 8, 0, &e) != OK ||
        file_write_at(&f, header, len, 8, &e) != OK ||
        file_truncate(&f, 8 + (int64_t)len + data, &e) != OK)
        printf("# %s\n", e.text);
    file_close(&f, NULL);
}

#define T32(name, n, b, e) \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" #n "],\"data_offsets\":[" #b "," #e "]}"

static const struct hostile {
    const char *what, *header;
    int64_t n, data; /* said length (-1: true), bytes of data */
    const char *match;
} hostile[] = {
    { "length of header beyond the file", "{}", 1000, 0, "truncated" },
    { "absurd length of header", "{}", INT64_MAX, 0, "truncated" },
    { "length of header all ones", "{}", -2, 0, "truncated" },
    { "length of header over the limit", "{}", 100000001, 0, "at most" },
    { "header of length 0", "{}", 0, 0, "not a safetensors" },
    { "header is a list", "[]", -1, 0, "does not begin with" },
    { "leading blank", " {}", -1, 0, "does not begin with" },
    { "header cut short", "{\"a\":{\"dtype\":\"F32\"", -1, 0, "JSON" },
    { "text behind the header", "{}{}", -1, 0, "JSON" },
    { "zero byte behind the header", "{}\\u0000", -1, 0, "JSON" },
    { "invalid UTF-8", "{\"\xff\":1}", -1, 0, "JSON" },
    { "NUL in a name", "{\"a\\u0000b\":1}", -1, 0, "JSON" },
    { "duplicate tensor", "{" T32("a", 1, 0, 4) "," T32("a", 1, 4, 8) "}", -1, 8, "duplicate" },
    { "duplicate key in an entry",
      "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", -1, 4,
      "duplicate" },
    { "hole", "{" T32("a", 1, 0, 4) "," T32("b", 1, 8, 12) "}", -1, 12, "hole" },
    { "hole at the start", "{" T32("a", 1, 4, 8) "}", -1, 8, "hole" },
    { "overlap", "{" T32("a", 2, 0, 8) "," T32("b", 1, 4, 8) "}", -1, 8, "overlaps" },
    { "the same bytes twice", "{" T32("a", 1, 0, 4) "," T32("b", 1, 0, 4) "}", -1, 4, "overlaps" },
    { "bytes behind the last tensor", "{" T32("a", 1, 0, 4) "}", -1, 5, "belong to nothing" },
    { "data truncated", "{" T32("a", 2, 0, 8) "}", -1, 7, "outside" },
    { "no data at all", "{" T32("a", 2, 0, 8) "}", -1, 0, "outside" },
    { "begin after end", "{" T32("a", 1, 4, 0) "}", -1, 4, "outside" },
    { "negative offset", "{" T32("a", 1, -4, 0) "}", -1, 4, "outside" },
    { "offset of 2^63", "{" T32("a", 1, 0, 9223372036854775808) "}", -1, 4, "JSON" },
    { "offset of 2^63-1", "{" T32("a", 1, 0, 9223372036854775807) "}", -1, 4, "outside" },
    { "offsets as reals", "{" T32("a", 1, 0.0, 4.0) "}", -1, 4, "whole numbers" },
    { "one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", -1, 4,
      "two whole" },
    { "three offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", -1, 4,
      "two whole" },
    { "size does not fit the shape", "{" T32("a", 2, 0, 4) "}", -1, 4, "its shape needs 8" },
    { "shape overflows",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", -1, 0,
      "2^63" },
    { "shape overflows to 0",
      "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", -1, 0,
      "2^63" },
    { "negative extent", "{" T32("a", -1, 0, 4) "}", -1, 4, "numbers from 0" },
    { "extent as text", "{" T32("a", "1", 0, 4) "}", -1, 4, "numbers from 0" },
    { "five dimensions", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}",
      -1, 4, "4 dimensions" },
    { "shape is a number", "{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", -1, 4,
      "not a list" },
    { "no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", -1, 4, "not a list" },
    { "no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", -1, 4, "dtype" },
    { "dtype is a number", "{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", -1, 4,
      "dtype" },
    { "unknown dtype", "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", -1,
      4, "F8_E4M3" },
    { "unknown key", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", -1,
      4, "unknown key" },
    { "entry is a list", "{\"a\":[]}", -1, 0, "not an object" },
    { "metadata of numbers", "{\"__metadata__\":{\"a\":1}}", -1, 0, "not a string" },
    { "metadata is a text", "{\"__metadata__\":\"pt\"}", -1, 0, "not an object" },
    { "empty name", "{" T32("", 1, 0, 4) "}", -1, 4, "name" },
    { "escape sequence in a name", "{" T32("\\u001b[31m", 1, 0, 4) "}", -1, 4, "control" },
};

static int refused(const char *path, const char *match)
{
    struct err e = { { 0 } };
    struct st_model m;
    enum status st = st_open(&m, path, &e);

    if (st == OK)
        st_close(&m);
    if (st != E_FILE || !strstr(e.text, match) || !strstr(e.text, dir))
        printf("# status %d: %s\n", st, e.text);
    return st == E_FILE && strstr(e.text, match) && strstr(e.text, dir);
}

static void test_hostile(void)
{
    char *deep = mem_take(100001);
    char *longname = mem_take(2000);

    for (int i = 0; i < COUNT_OF(hostile); i++) {
        const struct hostile *h = &hostile[i];

        write_raw(in_dir("h.safetensors"), h->header, h->n == -2 ? -1 : h->n, h->data);
        if (h->n == -2) {
            struct file f;

            file_open(&f, in_dir("h.safetensors"), FILE_UPDATE, NULL);
            file_write_at(&f, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0, NULL);
            file_close(&f, NULL);
        }
        tap_ok(refused(in_dir("h.safetensors"), h->match), "refused: %s", h->what);
    }
    memset(deep, '[', 100000);
    memcpy(deep, "{\"a\":", 5);
    write_raw(in_dir("h.safetensors"), deep, -1, 0);
    tap_ok(refused(in_dir("h.safetensors"), "deep"), "refused: deep nesting");
    memset(longname, 'x', 1999);
    memcpy(longname, "{\"", 2);
    memcpy(longname + 1900, "\":{}}", 6);
    write_raw(in_dir("h.safetensors"), longname, -1, 0);
    tap_ok(refused(in_dir("h.safetensors"), "longer"), "refused: a name of 1,898 bytes");
    file_write_whole(in_dir("h.safetensors"), "abc", 3, NULL);
    tap_ok(refused(in_dir("h.safetensors"), "3 bytes"), "refused: a file of 3 bytes");
    tap_ok(refused(in_dir("absent.safetensors"), "open"), "refused: absent file");
    mem_give(deep);
    mem_give(longname);
}

/* ---- folders ---- */

static void write_index(const char *text)
{
    file_write_whole(in_dir("m/model.safetensors.index.json"), text, strlen(text), NULL);
}

static const char *const bad_shards[][2] = {
    { "\"../a.safetensors\"", "plain name" },
    { "\"/etc/passwd\"", "plain name" },
    { "\"sub/a.safetensors\"", "plain name" },
    { "\".a.safetensors\"", "plain name" },
    { "\"a.bin\"", "plain name" },
    { "\"a\\nb.safetensors\"", "plain name" },
    { "1", "plain name" },
    { "null", "plain name" },
    { "\"absent.safetensors\"", "open" },
    { "\"b.safetensors\"", "is not in" },
    { "\"link.safetensors\"", "leads out" },
};

static void test_folders(void)
{
    struct st_model m;
    struct err e = { { 0 } };
    char text[512];

    file_make_dirs(in_dir("m"), NULL);
    tap_ok(refused(in_dir("m"), "neither"), "refused: an empty folder");
    write_raw(in_dir("m/a.safetensors"), "{" T32("a", 1, 0, 4) "}", -1, 4);
    write_raw(in_dir("m/b.safetensors"), "{" T32("b", 1, 0, 4) "}", -1, 4);
    write_raw(in_dir("m/c.safetensors"), "{" T32("a", 1, 0, 4) "}", -1, 4);
    write_raw(in_dir("outside.safetensors"), "{" T32("a", 1, 0, 4) "}", -1, 4);
    tap_ok(symlink(in_dir("outside.safetensors"), in_dir("m/link.safetensors")) == 0, "a link");
    for (int i = 0; i < COUNT_OF(bad_shards); i++) {
        snprintf(text, sizeof text, "{\"weight_map\":{\"a\":%s}}", bad_shards[i][0]);
        write_index(text);
        tap_ok(refused(in_dir("m"), bad_shards[i][1]), "refused: shard %s", bad_shards[i][0]);
    }
    write_index("{}");
    tap_ok(refused(in_dir("m"), "weight_map"), "refused: no weight_map");
    write_index("{\"weight_map\":[]}");
    tap_ok(refused(in_dir("m"), "weight_map"), "refused: weight_map is a list");
    write_index("{\"weight_map\":{\"a\":\"a.safetensors\",\"x\":\"c.safetensors\"}}");
    tap_ok(refused(in_dir("m"), "two files"), "refused: one tensor in two files");
    write_index(
        "{\"metadata\":{},\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}");
    tap_ok(st_open(&m, in_dir("m"), &e) == OK && m.n == 2 && m.nfiles == 2 && st_find(&m, "b") &&
               !st_find(&m, "c"),
           "two shards open %s", e.text);
    st_close(&m);
    /* the hub's cache: snapshots/X/model.safetensors links to blobs */
    file_make_dirs(in_dir("hub/snapshots/x"), NULL);
    file_make_dirs(in_dir("hub/blobs"), NULL);
    write_raw(in_dir("hub/blobs/77"), "{" T32("a", 1, 0, 4) "}", -1, 4);
    tap_ok(symlink("../../blobs/77", in_dir("hub/snapshots/x/model.safetensors")) == 0 &&
               st_open(&m, in_dir("hub/snapshots/x"), &e) == OK && m.n == 1,
           "a snapshot of the hub's cache opens %s", e.text);
    st_close(&m);
}

/* ---- values ---- */

static const struct st_tensor shapes[] = {
    { .name = "matrix", .dtype = F32, .nd = 2, .shape = { 7, 5 } },
    { .name = "empty", .dtype = F32, .nd = 2, .shape = { 0, 5 } },
    { .name = "half", .dtype = BF16, .nd = 1, .shape = { 3 } },
    { .name = "cube", .dtype = F64, .nd = 3, .shape = { 3, 4, 5 } },
    { .name = "scalar", .dtype = F16, .nd = 0 },
    { .name = "long", .dtype = F32, .nd = 2, .shape = { 3, 300000 } },
};

static double value(int tensor, int64_t i)
{
    return (double)((i * 7 + tensor * 3) % 64) / 4;
}

static enum status write_model(const char *path, struct st_tensor *t, struct err *e)
{
    struct st_writer *w;
    enum status st = st_writer_open(&w, path, t, COUNT_OF(shapes), e), closed;

    for (int k = 0; st == OK && k < COUNT_OF(shapes); k++) {
        struct box b = box_whole(t[k].nd, t[k].shape);
        int64_t n = box_count(&b);

        for (int64_t i = 0; i < n && st == OK; i += 1000) {
            double x[1000];
            char y[8000];
            int64_t m = min_i64(1000, n - i);

            for (int64_t j = 0; j < m; j++)
                x[j] = value(k, i + j);
            dtype_convert(y, t[k].dtype, x, F64, m);
            st = st_writer_put(w, k, i, y, m, e);
        }
    }
    if (!w)
        return st;
    closed = st_writer_close(w, e);
    return st == OK ? closed : st;
}

/* Every box of the tensor (or a few of a large one), in two types. */
static int boxes_agree(const struct st_model *m, const struct st_tensor *t, int k)
{
    int64_t n = t->nd ? t->shape[0] : 1, last = t->nd ? t->shape[t->nd - 1] : 1;
    double *x = mem_take((size_t)(n * last * 8 * 32));
    float *y = mem_take((size_t)(n * last * 4 * 32));
    int good = 1;

    for (int64_t o = 0; o < n; o++)
        for (int64_t c = 0; c<last; c += last> 1000 ? 77777 : 1) {
            struct box b = box_whole(t->nd, t->shape);
            int64_t i = 0;

            if (t->nd) {
                b.off[0] = o;
                b.ext[0] = n - o;
            }
            if (t->nd > 1) {
                b.off[t->nd - 1] = c;
                b.ext[t->nd - 1] = last - c;
            }
            good &= st_read_box(m, t, &b, x, F64, NULL) == OK &&
                    st_read_box(m, t, &b, y, F32, NULL) == OK;
            for (int64_t p = 0; p < box_count(&b); p++) {
                int64_t rest = p, at = 0, stride = 1;

                for (int d = t->nd - 1; d >= 0; d--) {
                    at += (b.off[d] + rest % b.ext[d]) * stride;
                    rest /= b.ext[d];
                    stride *= t->shape[d];
                }
                good &= x[i] == value(k, at) && (double)y[i] == value(k, at);
                i++;
            }
        }
    mem_give(x);
    mem_give(y);
    return good;
}

static void test_values(void)
{
    struct st_tensor t[COUNT_OF(shapes)];
    struct st_model m;
    struct err e = { { 0 } };
    struct st_writer *w;
    int good = 1;

    memcpy(t, shapes, sizeof shapes);
    tap_ok(write_model(in_dir("v.safetensors"), t, &e) == OK, "written %s", e.text);
    tap_ok(t[0].begin % 4096 == 0 && t[0].end == t[1].begin,
           "data begins at a page, in the given order");
    tap_ok(st_open(&m, in_dir("v.safetensors"), &e) == OK && m.n == COUNT_OF(shapes), "opens %s",
           e.text);
    for (int i = 1; i < m.n; i++)
        good &= strcmp(m.tensor[i - 1].name, m.tensor[i].name) < 0;
    tap_ok(good, "sorted by name");
    for (int k = 0; k < COUNT_OF(shapes); k++) {
        const struct st_tensor *f = st_find(&m, shapes[k].name);

        tap_ok(f && f->dtype == shapes[k].dtype && f->nd == shapes[k].nd &&
                   f->begin == t[k].begin && boxes_agree(&m, f, k),
               "%s: shape, place and boxes", shapes[k].name);
    }
    st_close(&m);
    tap_ok(st_writer_open(&w, in_dir("v.safetensors"), t, 1, &e) == E_FILE && !w,
           "an existing file is not overwritten");
    e.text[0] = 0;
    st_writer_open(&w, in_dir("w.safetensors"), t, 1, &e);
    tap_ok(st_writer_close(w, &e) == E_BUG, "a tensor that was not put is found");
}

/* Another writer's file: unaligned data, numbers of whole types, a value too large for the asked
 * type. */
static void test_foreign(void)
{
    struct st_model m;
    struct err e = { { 0 } };
    double big[2] = { 1, 1e300 }, back[2];
    float narrow[2];
    struct file f;
    const char *h = "{\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[3,19]},"
                    "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}   ";
    struct box one = box_whole(1, (int64_t[]){ 2 }), three = box_whole(1, (int64_t[]){ 3 });

    write_raw(in_dir("f.safetensors"), h, -1, 19);
    file_open(&f, in_dir("f.safetensors"), FILE_UPDATE, NULL);
    file_write_at(&f, big, 16, 8 + (int64_t)strlen(h) + 3, NULL);
    file_close(&f, NULL);
    tap_ok(st_open(&m, in_dir("f.safetensors"), &e) == OK, "unaligned data opens %s", e.text);
    tap_ok(st_read_box(&m, st_find(&m, "d"), &one, back, F64, &e) == OK && back[1] == 1e300,
           "and is read");
    tap_ok(st_read_box(&m, st_find(&m, "d"), &one, narrow, F32, &e) == E_FILE &&
               strstr(e.text, "element 1"),
           "a value that does not fit is refused");
    e.text[0] = 0;
    tap_ok(st_read_box(&m, st_find(&m, "b"), &three, narrow, F32, &e) == E_FILE &&
               strstr(e.text, "U8"),
           "whole numbers are refused by name");
    st_close(&m);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%.200s/pretrain-st-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 99;
    tap_plan(COUNT_OF(hostile) + 4 + COUNT_OF(bad_shards) + 7 + COUNT_OF(shapes) + 6 + 4);
    test_hostile();
    test_folders();
    test_values();
    test_foreign();
    file_remove_tree(dir, NULL);
    return tap_done();
}
