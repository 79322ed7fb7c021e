#include "hf/safetensors.h"

#include "base/arena.h"
#include "hf/json_text.h"
#include "hf/slab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_MAX = 100000000, /* the format's own limit */
    INDEX_MAX = 100000000,
    TENSORS_MAX = 1 << 18,
    FILES_MAX = 4096,
    BUFFER = 1 << 20
};

static const struct {
    const char *name;
    enum dtype t;
} types[] = { { "F32", F32 }, { "F64", F64 }, { "BF16", BF16 }, { "F16", F16 }, { "I64", I64 },
              { "I32", I32 }, { "U8", U8 },   { "U16", U16 },   { "U32", U32 } };

const char *st_type_name(enum dtype t)
{
    for (int i = 0; i < COUNT_OF(types); i++)
        if (types[i].t == t)
            return types[i].name;
    return "?";
}

static enum status bad(struct err *e, const struct file *f, const char *tensor, const char *why)
{
    return err_set(e, E_FILE, "%s: tensor %.255s: %s", f->path, tensor, why);
}

/* ---- one header ---- */

static enum status take_dtype(struct st_tensor *t, const json_t *j, const struct file *f,
                              struct err *e)
{
    const char *name = json_string_value(j);

    if (!name)
        return bad(e, f, t->name, "\"dtype\" is absent or not a string");
    for (int i = 0; i < COUNT_OF(types); i++)
        if (strcmp(types[i].name, name) == 0) {
            t->dtype = types[i].t;
            return OK;
        }
    return err_set(e, E_FILE,
                   "%s: tensor %s has dtype %.32s, which this program does not read; save the "
                   "model as F32, BF16, F16 or F64",
                   f->path, t->name, name);
}

/* *bytes: of the tensor. */
static enum status take_shape(struct st_tensor *t, const json_t *j, int64_t *bytes,
                              const struct file *f, struct err *e)
{
    int64_t n = (int64_t)dtype_size(t->dtype);

    if (!json_is_array(j))
        return bad(e, f, t->name, "\"shape\" is absent or not a list");
    if (json_array_size(j) > BOX_MAX)
        return bad(e, f, t->name, "more than 4 dimensions");
    t->nd = (int)json_array_size(j);
    for (int d = 0; d < t->nd; d++) {
        const json_t *x = json_array_get(j, (size_t)d);

        if (!json_is_integer(x) || json_integer_value(x) < 0)
            return bad(e, f, t->name, "\"shape\" must be a list of numbers from 0");
        t->shape[d] = json_integer_value(x);
        if (__builtin_mul_overflow(n, t->shape[d], &n))
            return bad(e, f, t->name, "the shape has more than 2^63 bytes");
    }
    *bytes = n;
    return OK;
}

static enum status take_offsets(struct st_tensor *t, const json_t *j, int64_t bytes, int64_t data,
                                int64_t size, const struct file *f, struct err *e)
{
    const json_t *b = json_array_get(j, 0), *n = json_array_get(j, 1);

    if (json_array_size(j) != 2 || !json_is_integer(b) || !json_is_integer(n))
        return bad(e, f, t->name, "\"data_offsets\" must be two whole numbers");
    t->begin = json_integer_value(b);
    t->end = json_integer_value(n);
    if (t->begin < 0 || t->end < t->begin || t->end > size - data)
        return err_set(e, E_FILE,
                       "%s: tensor %s: data_offsets %lld, %lld are outside the file's %lld bytes "
                       "of data: it is damaged or truncated",
                       f->path, t->name, (long long)t->begin, (long long)t->end,
                       (long long)(size - data));
    if (t->end - t->begin != bytes)
        return err_set(e, E_FILE,
                       "%s: tensor %s: data_offsets hold %lld bytes, its shape needs %lld", f->path,
                       t->name, (long long)(t->end - t->begin), (long long)bytes);
    t->begin += data;
    t->end += data;
    return OK;
}

/* Names are printed: no control characters. */
static int good_name(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return 0;
    return 1;
}

static enum status take_tensor(struct st_tensor *t, const char *name, json_t *j, int64_t data,
                               int64_t size, const struct file *f, struct err *e)
{
    const char *key;
    json_t *value;
    int64_t bytes = 0;
    enum status st;

    if (!name[0] || strlen(name) >= sizeof t->name || !good_name(name))
        return err_set(e, E_FILE,
                       "%s: the name of a tensor is empty, longer than %zu bytes or has control "
                       "characters",
                       f->path, sizeof t->name - 1);
    strcpy(t->name, name);
    if (!json_is_object(j))
        return bad(e, f, name, "its entry is not an object");
    json_object_foreach(j, key, value)
    {
        if (strcmp(key, "dtype") && strcmp(key, "shape") && strcmp(key, "data_offsets"))
            return err_set(e, E_FILE, "%s: tensor %s: unknown key \"%.64s\"", f->path, name, key);
    }
    st = take_dtype(t, json_object_get(j, "dtype"), f, e);
    if (st == OK)
        st = take_shape(t, json_object_get(j, "shape"), &bytes, f, e);
    if (st == OK)
        st = take_offsets(t, json_object_get(j, "data_offsets"), bytes, data, size, f, e);
    return st;
}

static enum status check_metadata(json_t *j, const struct file *f, struct err *e)
{
    const char *key;
    json_t *value;

    if (!json_is_object(j))
        return err_set(e, E_FILE, "%s: __metadata__ is not an object", f->path);
    json_object_foreach(j, key, value)
    {
        if (!json_is_string(value))
            return err_set(e, E_FILE, "%s: __metadata__: \"%.64s\" is not a string", f->path, key);
    }
    return OK;
}

static int by_place(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The data section is the tensors, one after the other, without holes. */
static enum status check_places(struct st_tensor *t, int n, int64_t data, int64_t size,
                                const struct file *f, struct err *e)
{
    int64_t at = data;

    qsort(t, (size_t)n, sizeof *t, by_place);
    for (int i = 0; i < n; i++) {
        if (t[i].begin != at)
            return bad(e, f, t[i].name,
                       t[i].begin < at ? "overlaps another tensor" : "a hole lies before its data");
        at = t[i].end;
    }
    if (at != size)
        return err_set(e, E_FILE, "%s: %lld bytes behind the last tensor belong to nothing",
                       f->path, (long long)(size - at));
    return OK;
}

static enum status read_header(struct file *f, json_t **header, int64_t *data, int64_t *size,
                               struct err *e)
{
    unsigned char b[8];
    uint64_t n = 0;
    char *text;
    enum status st;

    *size = file_size(f);
    if (*size < 10)
        return err_set(e, E_FILE, "%s: not a safetensors file: it has %lld bytes", f->path,
                       (long long)*size);
    if ((st = file_read_at(f, b, sizeof b, 0, e)) != OK)
        return st;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | b[i];
    if (n < 2 || n > HEADER_MAX || n > (uint64_t)*size - 8)
        return err_set(
            e, E_FILE,
            "%s: not a safetensors file, or truncated: its header should have %llu bytes, "
            "the file has %lld (at most %d are allowed)",
            f->path, (unsigned long long)n, (long long)*size, HEADER_MAX);
    text = mem_take((size_t)n);
    st = file_read_at(f, text, (size_t)n, 8, e);
    if (st == OK && text[0] != '{')
        st = err_set(e, E_FILE, "%s: not a safetensors file: its header does not begin with {",
                     f->path);
    if (st == OK && !(*header = json_read(text, (size_t)n, f->path, e)))
        st = E_FILE;
    mem_give(text);
    *data = 8 + (int64_t)n;
    return st;
}

/* Appends the tensors of file number `file`. */
static enum status take_file(struct st_model *m, int file, struct err *e)
{
    struct file *f = &m->file[file];
    json_t *header = NULL, *value;
    const char *key;
    int64_t data = 0, size = 0;
    enum status st = read_header(f, &header, &data, &size, e);
    size_t more = st == OK ? json_object_size(header) : 0;
    int n = m->n;

    if (st == OK && (size_t)n + more > TENSORS_MAX)
        st = err_set(e, E_FILE, "%s: more than %d tensors", f->path, TENSORS_MAX);
    if (st == OK) {
        size_t each = sizeof *m->tensor;

        m->tensor = mem_grow(m->tensor, (size_t)n * each, ((size_t)n + more + 1) * each);
        json_object_foreach(header, key, value)
        {
            if (st != OK)
                break;
            if (strcmp(key, "__metadata__") == 0) {
                st = check_metadata(value, f, e);
                continue;
            }
            m->tensor[n].file = file;
            st = take_tensor(&m->tensor[n++], key, value, data, size, f, e);
        }
    }
    if (st == OK)
        st = check_places(m->tensor + m->n, n - m->n, data, size, f, e);
    m->n = n;
    json_decref(header);
    return st;
}

/* ---- a folder ---- */

/* A shard's name may not lead out of the folder, nor may a link (the cache of Hugging Face's hub
 * excepted, whose snapshots/X/FILE link to blobs). */
static int good_shard_name(const char *s)
{
    size_t n = strlen(s),
           ok = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 12 && n < 256 && ok == n && s[0] != '.' && strcmp(s + n - 12, ".safetensors") == 0;
}

static int under(const char *path, const char *dir)
{
    char *real = realpath(dir, NULL);
    size_t n = real ? strlen(real) : 0;
    int is = real && strncmp(path, real, n) == 0 && (path[n] == '/' || (n == 1 && real[0] == '/'));

    free(real);
    return is;
}

static enum status check_inside(const char *dir, const char *path, struct err *e)
{
    char *real = realpath(path, NULL);
    struct json_text blobs = { 0 };
    int ok;

    if (!real)
        return OK; /* opening it will say why */
    json_text_add(&blobs, "%s/../../blobs", dir);
    ok = under(real, dir) || under(real, blobs.s);
    mem_give(blobs.s);
    free(real);
    return ok ? OK
              : err_set(e, E_FILE, "%s: a link that leads out of the folder is not followed", path);
}

static enum status open_file(struct st_model *m, const char *dir, const char *name, struct err *e)
{
    struct json_text path = { 0 };
    enum status st = OK;

    json_text_add(&path, "%s%s%s", dir ? dir : "", dir ? "/" : "", name);
    m->file = mem_grow(m->file, (size_t)m->nfiles * sizeof *m->file,
                       (size_t)(m->nfiles + 1) * sizeof *m->file);
    if (dir)
        st = check_inside(dir, path.s, e);
    if (st == OK)
        st = file_open(&m->file[m->nfiles], path.s, FILE_READ, e);
    mem_give(path.s);
    if (st == OK)
        st = take_file(m, m->nfiles++, e);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct st_tensor *)a)->name, ((const struct st_tensor *)b)->name);
}

static enum status sort_names(struct st_model *m, const char *dir, struct err *e)
{
    qsort(m->tensor, (size_t)m->n, sizeof *m->tensor, by_name);
    for (int i = 1; i < m->n; i++)
        if (strcmp(m->tensor[i - 1].name, m->tensor[i].name) == 0)
            return err_set(e, E_FILE, "%s: tensor %s is in two files", dir, m->tensor[i].name);
    return OK;
}

static int file_number(const struct st_model *m, const char *dir, const char *name)
{
    size_t n = strlen(dir) + 1;

    for (int i = 0; i < m->nfiles; i++)
        if (strcmp(m->file[i].path + n, name) == 0)
            return i;
    return -1;
}

static enum status open_shards(struct st_model *m, const char *dir, const char *index, json_t *map,
                               struct err *e)
{
    const char *key, *name;
    json_t *value;
    enum status st = OK;

    if (!json_is_object(map) || json_object_size(map) == 0)
        return err_set(e, E_FILE, "%s: \"weight_map\" is absent, empty or not an object", index);
    json_object_foreach(map, key, value)
    {
        name = json_string_value(value);
        if (!name || !good_shard_name(name))
            return err_set(e, E_FILE,
                           "%s: weight_map: the file of %.200s must be a plain name like "
                           "model-00001-of-00002.safetensors in the same folder",
                           index, good_name(key) ? key : "a tensor");
        if (file_number(m, dir, name) >= 0)
            continue;
        if (m->nfiles == FILES_MAX)
            return err_set(e, E_FILE, "%s: more than %d files", index, FILES_MAX);
        if ((st = open_file(m, dir, name, e)) != OK)
            return st;
    }
    if ((st = sort_names(m, dir, e)) != OK)
        return st;
    json_object_foreach(map, key, value)
    {
        const struct st_tensor *t = st_find(m, key);

        name = json_string_value(value);
        if (!t || t->file != file_number(m, dir, name))
            return err_set(e, E_FILE, "%s: weight_map: tensor %.200s is not in %s", index,
                           good_name(key) ? key : "(with control characters)", name);
    }
    return OK;
}

static enum status open_folder(struct st_model *m, const char *dir, struct err *e)
{
    struct json_text path = { 0 };
    json_t *index;
    enum status st;

    json_text_add(&path, "%s/model.safetensors", dir);
    if (file_exists(path.s)) {
        st = open_file(m, dir, "model.safetensors", e);
        mem_give(path.s);
        return st == OK ? sort_names(m, dir, e) : st;
    }
    json_text_add(&path, ".index.json");
    if (!file_exists(path.s)) {
        mem_give(path.s);
        return err_set(e, E_FILE,
                       "%s: holds neither model.safetensors nor model.safetensors.index.json", dir);
    }
    st = check_inside(dir, path.s, e);
    index = st == OK ? json_read_file(path.s, INDEX_MAX, e) : NULL;
    st = index ? open_shards(m, dir, path.s, json_object_get(index, "weight_map"), e) : E_FILE;
    json_decref(index);
    mem_give(path.s);
    return st;
}

enum status st_open(struct st_model *m, const char *dir, struct err *e)
{
    enum status st;

    *m = (struct st_model){ 0 };
    if (strlen(dir) > 3800)
        return err_set(e, E_FILE, "%.60s...: the path is too long", dir);
    if (file_is_dir(dir)) {
        st = open_folder(m, dir, e);
    } else {
        st = open_file(m, NULL, dir, e);
        if (st == OK)
            st = sort_names(m, dir, e);
    }
    if (st != OK)
        st_close(m);
    return st;
}

void st_close(struct st_model *m)
{
    for (int i = 0; i < m->nfiles; i++)
        file_close(&m->file[i], NULL);
    mem_give(m->file);
    mem_give(m->tensor);
    *m = (struct st_model){ 0 };
}

const struct st_tensor *st_find(const struct st_model *m, const char *name)
{
    int lo = 0, hi = m->n - 1;

    while (lo <= hi) {
        int mid = (lo + hi) / 2, c = strcmp(name, m->tensor[mid].name);

        if (c == 0)
            return &m->tensor[mid];
        if (c < 0)
            hi = mid - 1;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* ---- data ---- */

/* n elements that begin at element `at` of the tensor. */
static enum status read_run(struct file *f, const struct st_tensor *t, int64_t at, int64_t n,
                            char *dst, enum dtype to, char *buffer, struct err *e)
{
    int64_t size = (int64_t)dtype_size(t->dtype), most = BUFFER / size;
    enum status st = OK;

    if (to == t->dtype)
        return file_read_at(f, dst, (size_t)(n * size), t->begin + at * size, e);
    for (int64_t i = 0; i < n && st == OK; i += most) {
        int64_t m = min_i64(most, n - i), over;

        st = file_read_at(f, buffer, (size_t)(m * size), t->begin + (at + i) * size, e);
        if (st != OK)
            return st;
        over = dtype_convert(dst + i * (int64_t)dtype_size(to), to, buffer, t->dtype, m);
        if (over >= 0)
            st = err_set(e, E_FILE, "%s: tensor %s: element %lld does not fit %s", f->path, t->name,
                         (long long)(at + i + over), dtype_name(to));
    }
    return st;
}

enum status st_read_box(const struct st_model *m, const struct st_tensor *t, const struct box *what,
                        void *dst, enum dtype to, struct err *e)
{
    struct file *f = &m->file[t->file];
    struct box whole = box_whole(t->nd, t->shape);
    struct slab_runs r;
    int64_t from, into;
    char *buffer;
    enum status st = OK;

    BUG_IF(what->nd != t->nd);
    if (!dtype_is_float(t->dtype))
        return err_set(e, E_FILE, "%s: tensor %s has dtype %s, a floating-point type is needed",
                       f->path, t->name, st_type_name(t->dtype));
    if (box_count(what) == 0)
        return OK;
    buffer = mem_take(BUFFER);
    slab_runs_start(&r, &whole, what, what);
    while (st == OK && slab_runs_next(&r, &from, &into))
        st = read_run(f, t, from, r.run, (char *)dst + into * (int64_t)dtype_size(to), to, buffer,
                      e);
    mem_give(buffer);
    return st;
}
