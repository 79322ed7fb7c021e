#include "checkpoint/read.h"

#include "base/arena.h"
#include "hf/json_text.h"
#include "hf/slab.h"

#include <string.h>

enum { OPEN_FILES = 32, BOUNCE = 64 << 10 };

/* The block of a file that was read last, hash checked. */
struct checkpoint_block {
    int file, number; /* file -1: none */
    int64_t clock;    /* counts uses of files */
    char *bytes, *bounce;
};

/* ---- files and blocks ---- */

static enum status file_ready(struct checkpoint *c, int file, struct err *e)
{
    struct checkpoint_file *f = &c->file[file], *oldest = NULL;
    struct json_text path = { 0 };
    int open = 0;
    enum status st;

    f->used = ++c->block->clock;
    if (f->f.fd >= 0)
        return OK;
    for (int i = 0; i < c->nfiles; i++)
        if (c->file[i].f.fd >= 0) {
            open++;
            if (!oldest || c->file[i].used < oldest->used)
                oldest = &c->file[i];
        }
    if (open >= OPEN_FILES)
        file_close(&oldest->f, NULL);
    json_text_add(&path, "%s/%s", c->dir, f->name);
    st = file_open(&f->f, path.s, FILE_READ, e);
    mem_give(path.s);
    return st;
}

/* The block's bytes come into c->block; its hash is checked. */
static enum status block_load(struct checkpoint *c, int file, int number, struct err *e)
{
    struct checkpoint_file *f = &c->file[file];
    struct checkpoint_block *b = c->block;
    int64_t at = (int64_t)number * MANIFEST_BLOCK;
    size_t n = (size_t)min_i64(MANIFEST_BLOCK, f->bytes - at);
    struct hash_text h;
    enum status st;

    b->file = -1;
    st = file_ready(c, file, e);
    if (st == OK)
        st = file_read_at(&f->f, b->bytes, n, at, e);
    if (st != OK)
        return st;
    h = hash_bytes(b->bytes, n);
    if (strcmp(h.s, f->block[number].s))
        return err_set(
            e, E_FILE,
            "%s/%s: bytes %lld to %lld are not what was written (hash %s, expected %s): the "
            "file is damaged; use another checkpoint",
            c->dir, f->name, (long long)at, (long long)(at + (int64_t)n - 1), h.s,
            f->block[number].s);
    f->checked[number] = 1;
    b->file = file;
    b->number = number;
    return OK;
}

static enum status bytes_read(struct checkpoint *c, int file, int64_t at, int64_t n, char *dst,
                              struct err *e)
{
    struct checkpoint_block *b = c->block;
    enum status st = OK;

    while (n > 0 && st == OK) {
        int number = (int)(at / MANIFEST_BLOCK);
        int64_t in = at % MANIFEST_BLOCK, m = min_i64(n, MANIFEST_BLOCK - in);

        if (!c->file[file].checked[number])
            st = block_load(c, file, number, e);
        if (st == OK && b->file == file && b->number == number)
            memcpy(dst, b->bytes + in, (size_t)m);
        else if (st == OK && (st = file_ready(c, file, e)) == OK)
            st = file_read_at(&c->file[file].f, dst, (size_t)m, at, e);
        at += m;
        dst += m;
        n -= m;
    }
    return st;
}

enum status checkpoint_check_blocks(struct checkpoint *c, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < c->nfiles; i++)
        for (int k = 0; k < c->file[i].nblocks && st == OK; k++)
            if (!c->file[i].checked[k])
                st = block_load(c, i, k, e);
    return st;
}

/* ---- open ---- */

static enum status check_size(struct checkpoint *c, int file, struct err *e)
{
    struct checkpoint_file *f = &c->file[file];
    enum status st = file_ready(c, file, e);
    int64_t is = st == OK ? file_size(&f->f) : 0;

    if (st == OK && is != f->bytes)
        st = err_set(e, E_FILE,
                     "%s/%s: the file has %lld bytes, %lld were written: it is damaged; use "
                     "another checkpoint",
                     c->dir, f->name, (long long)is, (long long)f->bytes);
    return st;
}

static enum status read_text(struct checkpoint *c, const struct manifest_text *x, char **text,
                             struct err *e)
{
    if (!x->bytes)
        return OK;
    *text = mem_take((size_t)x->bytes + 1);
    return bytes_read(c, x->file, x->at, x->bytes, *text, e);
}

enum status checkpoint_open(struct checkpoint *c, const char *dir, struct err *e)
{
    struct manifest_texts x = { 0 };
    enum status st;
    size_t n = strlen(dir);

    *c = (struct checkpoint){ 0 };
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n + 32 > sizeof c->dir)
        return err_set(e, E_FILE, "%.60s...: the path is too long", dir);
    memcpy(c->dir, dir, n);
    if (!file_is_dir(c->dir))
        return err_set(e, E_FILE, "%s: not a checkpoint: there is no such directory", c->dir);
    c->block = mem_take(sizeof *c->block);
    c->block->file = -1;
    c->block->bytes = mem_take(MANIFEST_BLOCK);
    c->block->bounce = mem_take(BOUNCE);
    st = manifest_read(c, &x, e);
    for (int i = 0; i < c->nfiles && st == OK; i++)
        st = check_size(c, i, e);
    if (st == OK)
        st = read_text(c, &x.input_nml, &c->input_nml, e);
    if (st == OK)
        st = read_text(c, &x.tokenizer_json, &c->tokenizer_json, e);
    c->tokenizer_bytes = (size_t)x.tokenizer_json.bytes;
    if (st != OK)
        checkpoint_close(c);
    return st;
}

void checkpoint_close(struct checkpoint *c)
{
    for (int i = 0; i < c->nfiles; i++) {
        file_close(&c->file[i].f, NULL);
        mem_give(c->file[i].block);
        mem_give(c->file[i].checked);
    }
    if (c->block) {
        mem_give(c->block->bytes);
        mem_give(c->block->bounce);
    }
    mem_give(c->block);
    mem_give(c->file);
    mem_give(c->slab);
    mem_give(c->input_nml);
    mem_give(c->tokenizer_json);
    *c = (struct checkpoint){ 0 };
}

/* ---- tensors ---- */

int checkpoint_shape(const struct checkpoint *c, enum checkpoint_kind kind, const char *name,
                     int64_t shape[3], enum dtype *t)
{
    int n, i = manifest_find(c, kind, name, &n);

    if (n == 0)
        return 0;
    memcpy(shape, c->slab[i].global, sizeof c->slab[i].global);
    *t = c->slab[i].dtype;
    return c->slab[i].nd;
}

/* n elements of the slab from its element `from` on. */
static enum status run_read(struct checkpoint *c, const struct checkpoint_slab *s, int64_t from,
                            int64_t n, char *dst, enum dtype to, struct err *e)
{
    int64_t size = (int64_t)dtype_size(s->dtype), most = BOUNCE / size;
    enum status st = OK;

    if (to == s->dtype)
        return bytes_read(c, s->file, s->offset + from * size, n * size, dst, e);
    for (int64_t i = 0; i < n && st == OK; i += most) {
        int64_t m = min_i64(most, n - i);

        st = bytes_read(c, s->file, s->offset + (from + i) * size, m * size, c->block->bounce, e);
        if (st == OK && dtype_convert(dst + i * (int64_t)dtype_size(to), to, c->block->bounce,
                                      s->dtype, m) >= 0)
            st = err_set(e, E_FILE, "%s: a value of %s does not fit %s", c->dir, s->name,
                         dtype_name(to));
    }
    return st;
}

enum status checkpoint_read_box(struct checkpoint *c, enum checkpoint_kind kind, const char *name,
                                const struct box *what, void *dst, enum dtype to, struct err *e)
{
    int n, first = manifest_find(c, kind, name, &n);
    enum status st = OK;

    if (n == 0)
        return err_set(e, E_FILE, "%s: there is no tensor %s/%s", c->dir,
                       checkpoint_kind_names[kind], name);
    BUG_IF(what->nd != c->slab[first].nd);
    for (int i = first; i < first + n && st == OK; i++) {
        const struct checkpoint_slab *s = &c->slab[i];
        struct slab_runs r;
        struct box both;
        int64_t from, into;

        if (!box_intersect(&s->box, what, &both))
            continue;
        slab_runs_start(&r, &s->box, what, &both);
        while (st == OK && slab_runs_next(&r, &from, &into))
            st = run_read(c, s, from, r.run, (char *)dst + into * (int64_t)dtype_size(to), to, e);
    }
    return st;
}
