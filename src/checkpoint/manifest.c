#include "checkpoint/manifest.h"

#include "base/arena.h"
#include "hf/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const checkpoint_kind_names[CHECKPOINT_KINDS] = { "weights", "exp_avg", "exp_avg_sq" };

static const char hash_head[] = "\"manifest_xxh3\": \"", hash_tail[] = "\"\n}\n";

int64_t manifest_blocks(int64_t bytes)
{
    return ceil_div(bytes, MANIFEST_BLOCK);
}

static int slab_order(const struct checkpoint_slab *s, enum checkpoint_kind kind, const char *name)
{
    int c = strcmp(s->name, name);

    return c ? c : (int)s->kind - (int)kind;
}

static int slab_compare(const void *a, const void *b)
{
    const struct checkpoint_slab *x = a, *y = b;
    int c = slab_order(x, y->kind, y->name);

    for (int d = 0; d < x->nd && !c; d++)
        c = (x->box.off[d] > y->box.off[d]) - (x->box.off[d] < y->box.off[d]);
    return c;
}

void manifest_sort(struct checkpoint *c)
{
    qsort(c->slab, (size_t)c->nslabs, sizeof *c->slab, slab_compare);
}

int manifest_find(const struct checkpoint *c, enum checkpoint_kind kind, const char *name, int *n)
{
    int lo = 0, hi = c->nslabs;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (slab_order(&c->slab[mid], kind, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (hi = lo; hi < c->nslabs && slab_order(&c->slab[hi], kind, name) == 0;)
        hi++;
    *n = hi - lo;
    return lo;
}

/* ---- writing ---- */

static void add_list(struct json_text *t, const char *key, const int64_t *v, int n)
{
    json_text_add(t, "\"%s\": [", key);
    for (int i = 0; i < n; i++)
        json_text_add(t, "%s%lld", i ? ", " : "", (long long)v[i]);
    json_text_add(t, "], ");
}

static void add_slab(struct json_text *t, const struct checkpoint_slab *s)
{
    json_text_add(t, "{\"kind\": \"%s\", \"name\": ", checkpoint_kind_names[s->kind]);
    json_text_string(t, s->name, strlen(s->name));
    json_text_add(t, ", ");
    add_list(t, "shape", s->global, s->nd);
    add_list(t, "offset", s->box.off, s->nd);
    add_list(t, "extent", s->box.ext, s->nd);
    json_text_add(t, "\"dtype\": \"%s\", \"file\": %d, \"at\": %lld}", dtype_name(s->dtype),
                  s->file, (long long)s->offset);
}

static void add_file(struct json_text *t, const struct checkpoint_file *f)
{
    json_text_add(t, "{\"name\": \"%s\", \"bytes\": %lld, \"xxh3_128\": [", f->name,
                  (long long)f->bytes);
    for (int i = 0; i < f->nblocks; i++)
        json_text_add(t, "%s\"%s\"", i ? ", " : "", f->block[i].s);
    json_text_add(t, "]}");
}

static void add_text(struct json_text *t, const char *key, const struct manifest_text *x,
                     const char *end)
{
    if (x->bytes)
        json_text_add(t, "\"%s\": {\"file\": %d, \"at\": %lld, \"bytes\": %lld}%s", key, x->file,
                      (long long)x->at, (long long)x->bytes, end);
    else
        json_text_add(t, "\"%s\": null%s", key, end);
}

static void add_scalars(struct json_text *t, const struct checkpoint_scalars *s)
{
    for (int i = 0; i < CHECKPOINT_SCALARS; i++) {
        const struct checkpoint_scalar *row = &checkpoint_scalars[i];
        const void *value = (const char *)s + row->at;
        if (row->is_real)
            json_text_add(t, "\"%s\": %.17g,\n", row->name, *(const double *)value);
        else
            json_text_add(t, "\"%s\": %lld,\n", row->name, (long long)*(const int64_t *)value);
    }
}

char *manifest_write(const struct checkpoint *c, const struct manifest_texts *x)
{
    const struct checkpoint_scalars *s = &c->scalars;
    struct json_text t = { 0 };
    struct hash_text h;

    json_text_add(&t, "{\n\"format\": \"" CHECKPOINT_FORMAT "\",\n\"version\": %d,\n",
                  MANIFEST_VERSION);
    add_scalars(&t, s);
    json_text_add(&t, "\"eod\": %lld,\n\"data_hash\": ", (long long)c->eod);
    json_text_string(&t, c->data_hash, strlen(c->data_hash));
    json_text_add(
        &t,
        ",\n\"layout\": {\"dp\": %d, \"tp\": %d, \"pp\": %d, \"cp\": %d, \"zero_stage\": %d, "
        "\"ranks\": %d},\n\"texts\": {",
        c->dp, c->tp, c->pp, c->cp, s->zero_stage, c->ranks);
    add_text(&t, "input_nml", &x->input_nml, ", ");
    add_text(&t, "tokenizer_json", &x->tokenizer_json, "},\n");
    json_text_add(&t, "\"block_bytes\": %d,\n\"files\": [", MANIFEST_BLOCK);
    for (int i = 0; i < c->nfiles; i++) {
        json_text_add(&t, "%s\n", i ? "," : "");
        add_file(&t, &c->file[i]);
    }
    json_text_add(&t, "\n],\n\"slabs\": [");
    for (int i = 0; i < c->nslabs; i++) {
        json_text_add(&t, "%s\n", i ? "," : "");
        add_slab(&t, &c->slab[i]);
    }
    json_text_add(&t, "\n],\n");
    h = hash_bytes(t.s, t.n);
    json_text_add(&t, "%s%s%s", hash_head, h.s, hash_tail);
    return t.s;
}

/* ---- reading: every number is checked before it is used ---- */

struct reader {
    struct checkpoint *c;
    struct err *e;
    enum status st;
};

static void wrong(struct reader *r, const char *what)
{
    if (r->st == OK)
        r->st = err_set(r->e, E_FILE,
                        "%s/MANIFEST.json: %s is absent or wrong: not a checkpoint of this "
                        "version of the program",
                        r->c->dir, what);
}

static int64_t get_int(struct reader *r, const json_t *o, const char *key, int64_t lo, int64_t hi)
{
    const json_t *j = json_object_get(o, key);

    if (!json_is_integer(j) || json_integer_value(j) < lo || json_integer_value(j) > hi) {
        wrong(r, key);
        return lo;
    }
    return json_integer_value(j);
}

static const char *get_text(struct reader *r, const json_t *o, const char *key, size_t room)
{
    const char *s = json_string_value(json_object_get(o, key));

    if (!s || strlen(s) >= room) {
        wrong(r, key);
        return "";
    }
    return s;
}

static void get_list(struct reader *r, const json_t *o, const char *key, int n, int64_t *v)
{
    const json_t *j = json_object_get(o, key), *x;

    if (!json_is_array(j) || (int)json_array_size(j) != n)
        wrong(r, key);
    for (int i = 0; i < n && r->st == OK; i++) {
        x = json_array_get(j, (size_t)i);
        v[i] = json_integer_value(x);
        if (!json_is_integer(x) || v[i] < 0 || v[i] > INT64_C(1) << 48)
            wrong(r, key);
    }
}

static void get_text_place(struct reader *r, const json_t *o, const char *key,
                           struct manifest_text *x)
{
    const json_t *j = json_object_get(o, key);

    *x = (struct manifest_text){ 0 };
    if (json_is_null(j))
        return;
    x->file = (int)get_int(r, j, "file", 0, r->c->nfiles - 1);
    if (r->st != OK)
        return;
    x->at = get_int(r, j, "at", 0, r->c->file[x->file].bytes);
    x->bytes = get_int(r, j, "bytes", 1, r->c->file[x->file].bytes - x->at);
}

static int is_hash(const char *s)
{
    return s && strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32;
}

/* index.h5 or rank_00000.h5: nothing that leads out of the folder. */
static int is_file_name(const char *s)
{
    return strcmp(s, "index.h5") == 0 ||
           (strncmp(s, "rank_", 5) == 0 && strspn(s + 5, "0123456789") >= 5 &&
            strcmp(s + strlen(s) - 3, ".h5") == 0 && strlen(s) == 8 + strspn(s + 5, "0123456789"));
}

static void get_files(struct reader *r, const json_t *list)
{
    struct checkpoint *c = r->c;
    size_t n = json_array_size(list);

    if (n < 1 || n > 10000000) {
        wrong(r, "files");
        return;
    }
    c->file = mem_take(n * sizeof *c->file);
    for (c->nfiles = 0; c->nfiles < (int)n && r->st == OK; c->nfiles++) {
        const json_t *j = json_array_get(list, (size_t)c->nfiles), *hashes;
        struct checkpoint_file *f = &c->file[c->nfiles];

        f->f.fd = -1;
        snprintf(f->name, sizeof f->name, "%s", get_text(r, j, "name", sizeof f->name));
        if (r->st == OK && !is_file_name(f->name))
            wrong(r, "name of a file");
        f->bytes = get_int(r, j, "bytes", 0, INT64_C(1) << 50);
        hashes = json_object_get(j, "xxh3_128");
        if (r->st == OK && (int64_t)json_array_size(hashes) != manifest_blocks(f->bytes))
            wrong(r, "xxh3_128");
        if (r->st != OK)
            continue;
        f->nblocks = (int)json_array_size(hashes);
        f->block = mem_take((size_t)f->nblocks * sizeof *f->block);
        f->checked = mem_take((size_t)f->nblocks);
        for (int i = 0; i < f->nblocks; i++) {
            const char *h = json_string_value(json_array_get(hashes, (size_t)i));

            if (is_hash(h))
                memcpy(f->block[i].s, h, sizeof f->block[i].s);
            else
                wrong(r, "xxh3_128");
        }
    }
}

static void get_slab(struct reader *r, const json_t *j, struct checkpoint_slab *s)
{
    const char *kind = get_text(r, j, "kind", 16), *type;
    size_t nd = json_array_size(json_object_get(j, "shape"));
    int64_t bytes, all = 8, t;
    int k = 0;

    while (k < CHECKPOINT_KINDS && strcmp(kind, checkpoint_kind_names[k]))
        k++;
    snprintf(s->name, sizeof s->name, "%s", get_text(r, j, "name", sizeof s->name));
    type = get_text(r, j, "dtype", 16);
    t = dtype_from_name(type);
    if (k == CHECKPOINT_KINDS || nd < 1 || nd > 3 || t < 0 || !dtype_is_float((enum dtype)t))
        wrong(r, "a slab");
    if (r->st != OK)
        return;
    s->kind = (enum checkpoint_kind)k;
    s->dtype = (enum dtype)t;
    s->nd = s->box.nd = (int)nd;
    get_list(r, j, "shape", s->nd, s->global);
    get_list(r, j, "offset", s->nd, s->box.off);
    get_list(r, j, "extent", s->nd, s->box.ext);
    bytes = (int64_t)dtype_size(s->dtype);
    for (int d = 0; d < s->nd && r->st == OK; d++)
        if (s->box.ext[d] < 1 || s->box.off[d] + s->box.ext[d] > s->global[d] ||
            __builtin_mul_overflow(bytes, s->box.ext[d], &bytes) ||
            __builtin_mul_overflow(all, s->global[d], &all))
            wrong(r, "the extent of a slab");
    s->file = (int)get_int(r, j, "file", 0, r->c->nfiles - 1);
    if (r->st == OK)
        s->offset = get_int(r, j, "at", 0, r->c->file[s->file].bytes);
    if (r->st == OK && bytes > r->c->file[s->file].bytes - s->offset)
        wrong(r, "the place of a slab");
}

/* Slabs first .. first+n-1 are one tensor: they must be it, each element once. */
static void check_tensor(struct reader *r, int first, int n)
{
    const struct checkpoint_slab *s = r->c->slab + first;
    struct box whole = box_whole(s->nd, s->global), out;
    int64_t elements = 0;

    for (int i = 0; i < n && r->st == OK; i++) {
        if (s[i].nd != s->nd || s[i].dtype != s->dtype ||
            memcmp(s[i].global, s->global, sizeof s->global))
            wrong(r, s->name);
        if (__builtin_add_overflow(elements, box_count(&s[i].box), &elements))
            wrong(r, s->name);
        for (int k = 0; k < i && r->st == OK; k++)
            if (box_intersect(&s[i].box, &s[k].box, &out))
                wrong(r, s->name);
    }
    if (r->st == OK && elements != box_count(&whole))
        wrong(r, s->name);
}

static void get_slabs(struct reader *r, const json_t *list)
{
    struct checkpoint *c = r->c;
    size_t n = json_array_size(list);
    int of_tensor, shapes = 0;

    if (n < 1 || n > 100000000) {
        wrong(r, "slabs");
        return;
    }
    c->slab = mem_take(n * sizeof *c->slab);
    for (c->nslabs = 0; c->nslabs < (int)n && r->st == OK; c->nslabs++)
        get_slab(r, json_array_get(list, (size_t)c->nslabs), &c->slab[c->nslabs]);
    if (r->st != OK)
        return;
    manifest_sort(c);
    for (int i = 0; i < c->nslabs && r->st == OK; i += of_tensor) {
        manifest_find(c, c->slab[i].kind, c->slab[i].name, &of_tensor);
        check_tensor(r, i, of_tensor);
        /* weights, exp_avg, exp_avg_sq of one tensor follow each other and have one shape */
        if ((int)c->slab[i].kind != shapes++ % CHECKPOINT_KINDS ||
            (c->slab[i].kind &&
             (strcmp(c->slab[i].name, c->slab[i - 1].name) ||
              memcmp(c->slab[i].global, c->slab[i - 1].global, sizeof c->slab[i].global))))
            wrong(r, c->slab[i].name);
    }
    if (shapes % CHECKPOINT_KINDS)
        wrong(r, "slabs");
}

static void get_scalars(struct reader *r, const json_t *root, struct checkpoint_scalars *s)
{
    for (int i = 0; i < CHECKPOINT_SCALARS; i++) {
        const struct checkpoint_scalar *row = &checkpoint_scalars[i];
        const json_t *j = json_object_get(root, row->name);
        void *value = (char *)s + row->at;
        if (!j && row->optional)
            continue;
        if (!row->is_real)
            *(int64_t *)value = get_int(r, root, row->name, 0, INT64_C(1) << 62);
        else if (json_is_number(j) && json_number_value(j) >= 0)
            *(double *)value = json_number_value(j);
        else
            wrong(r, row->name);
    }
}

static void get_all(struct reader *r, const json_t *root, struct manifest_texts *x)
{
    const json_t *layout = json_object_get(root, "layout"), *texts = json_object_get(root, "texts");
    struct checkpoint *c = r->c;
    struct checkpoint_scalars *s = &c->scalars;

    if (strcmp(get_text(r, root, "format", 64), CHECKPOINT_FORMAT))
        wrong(r, "format");
    get_int(r, root, "version", MANIFEST_VERSION, MANIFEST_VERSION);
    get_int(r, root, "block_bytes", MANIFEST_BLOCK, MANIFEST_BLOCK);
    get_scalars(r, root, s);
    c->eod = get_int(r, root, "eod", -1, INT64_C(1) << 62);
    snprintf(c->data_hash, sizeof c->data_hash, "%s",
             get_text(r, root, "data_hash", sizeof c->data_hash));
    c->dp = (int)get_int(r, layout, "dp", 1, INT32_MAX);
    c->tp = (int)get_int(r, layout, "tp", 1, INT32_MAX);
    c->pp = (int)get_int(r, layout, "pp", 1, INT32_MAX);
    c->cp = (int)get_int(r, layout, "cp", 1, INT32_MAX);
    c->ranks = (int)get_int(r, layout, "ranks", 1, INT32_MAX);
    s->zero_stage = (int)get_int(r, layout, "zero_stage", 0, 3);
    if (r->st == OK)
        get_files(r, json_object_get(root, "files"));
    if (r->st == OK)
        get_slabs(r, json_object_get(root, "slabs"));
    if (r->st == OK) {
        get_text_place(r, texts, "input_nml", &x->input_nml);
        get_text_place(r, texts, "tokenizer_json", &x->tokenizer_json);
    }
}

static int hash_holds(const char *text, size_t n)
{
    size_t head = strlen(hash_head), tail = strlen(hash_tail), line = head + 32 + tail;
    struct hash_text h;

    if (n < line + 1 || memcmp(text + n - line, hash_head, head) ||
        memcmp(text + n - tail, hash_tail, tail))
        return 0;
    h = hash_bytes(text, n - line);
    return text[n - line - 1] == '\n' && memcmp(text + n - line + head, h.s, 32) == 0;
}

enum status manifest_read(struct checkpoint *c, struct manifest_texts *x, struct err *e)
{
    struct reader r = { .c = c, .e = e };
    struct json_text path = { 0 };
    char *text = NULL;
    size_t n = 0;
    json_t *root = NULL;

    json_text_add(&path, "%s/MANIFEST.json", c->dir);
    r.st = file_read_text(path.s, (size_t)2 << 30, &text, &n, e);
    if (r.st == OK && !hash_holds(text, n))
        r.st = err_set(
            e, E_FILE,
            "%s: its hash does not match its text: it is damaged, cut short or was edited", path.s);
    if (r.st == OK && !(root = json_read(text, n, path.s, e)))
        r.st = E_FILE;
    if (r.st == OK)
        get_all(&r, root, x);
    json_decref(root);
    mem_give(text);
    mem_give(path.s);
    return r.st;
}
