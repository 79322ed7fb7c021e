#include "convert/export_stream.h"

#include "base/arena.h"
#include "base/file.h"
#include "store/h5.h"

#include <stdio.h>
#include <string.h>

static const char format[] = "pretrain export";

enum status export_may_replace_file(const char *path, struct err *e)
{
    struct h5 *f = NULL;
    char is[64] = "";

    if (!file_exists(path))
        return OK;
    if (!file_is_dir(path) && h5_open(&f, path, NULL) == OK) {
        if (h5_get_text(f, "/", "format", is, sizeof is, NULL) != OK)
            is[0] = 0;
        h5_close(f, NULL);
    }
    return strcmp(is, format)
               ? err_set(e, E_INPUT,
                         "%s: is there already and is not an export of this program: "
                         "choose another name or remove it",
                         path)
               : OK;
}

struct target {
    struct file f;
    int64_t at; /* of the tensor's data */
    enum dtype dtype;
};

static enum status put(void *context, int64_t at, const void *data, int64_t n, struct err *e)
{
    struct target *t = context;
    int64_t size = (int64_t)dtype_size(t->dtype);

    return file_write_at(&t->f, data, (size_t)(n * size), t->at + at * size, e);
}

/* Moments keep their own type: rounding exp_avg_sq to 16 bits would lose it. */
static enum dtype type_of(const struct export *x, int kind)
{
    int64_t shape[3];
    enum dtype t = x->dtype;

    if (kind != CHECKPOINT_WEIGHTS)
        checkpoint_shape(&x->c, (enum checkpoint_kind)kind, x->ps.p[0].name, shape, &t);
    return t;
}

static int kinds_of(const struct export *x)
{
    return x->o->with_optimizer ? CHECKPOINT_KINDS : CHECKPOINT_WEIGHTS + 1;
}

/* offset [kinds][ps.n] */
static enum status add_tensors(struct export *x, struct h5 *f, int64_t *offset, struct err *e)
{
    enum status st = OK;

    for (int k = 0; k < kinds_of(x); k++)
        for (int i = 0; i < x->ps.n && st == OK; i++) {
            const struct param *p = &x->ps.p[i];
            char name[256];

            snprintf(name, sizeof name, "/%s/%s", checkpoint_kind_names[k], p->name);
            st = h5_dataset(f, name, type_of(x, k), p->nd, p->global,
                            &offset[(size_t)k * (size_t)x->ps.n + (size_t)i], e);
        }
    return st;
}

static enum status add_root(const struct export *x, struct h5 *f, struct err *e)
{
    enum status st = h5_set_text(f, "/", "format", format, e);

    if (st == OK)
        st = checkpoint_scalars_write(f, &x->c.scalars, e);
    if (st == OK)
        st = h5_set_i64(f, "/", "eod", &x->c.eod, 1, e);
    if (st == OK)
        st = h5_set_text(f, "/", "data_hash", x->c.data_hash, e);
    if (st == OK)
        st = h5_set_text(f, "/", "rope_layout", "half", e);
    return st;
}

static enum status make_skeleton(struct export *x, const char *path, int64_t *offset,
                                 int64_t text_at[2], struct err *e)
{
    struct h5 *f = NULL;
    int64_t input = (int64_t)strlen(x->c.input_nml), tokenizer = (int64_t)x->c.tokenizer_bytes;
    enum status st = h5_create(&f, path, 4096, 0, e), closed;

    if (st == OK)
        st = add_root(x, f, e);
    if (st == OK)
        st = add_tensors(x, f, offset, e);
    if (st == OK)
        st = h5_dataset(f, "/input_nml", U8, 1, &input, &text_at[0], e);
    if (st == OK && tokenizer)
        st = h5_dataset(f, "/tokenizer_json", U8, 1, &tokenizer, &text_at[1], e);
    closed = h5_close(f, e);
    return st == OK ? closed : st;
}

static enum status fill(struct export *x, struct target *t, const int64_t *offset,
                        const int64_t text_at[2], struct err *e)
{
    enum status st = file_write_at(&t->f, x->c.input_nml, strlen(x->c.input_nml), text_at[0], e);

    if (st == OK && x->c.tokenizer_json)
        st = file_write_at(&t->f, x->c.tokenizer_json, x->c.tokenizer_bytes, text_at[1], e);
    for (int k = 0; k < kinds_of(x); k++)
        for (int i = 0; i < x->ps.n && st == OK; i++) {
            t->at = offset[(size_t)k * (size_t)x->ps.n + (size_t)i];
            t->dtype = type_of(x, k);
            st = export_stream(x, (enum checkpoint_kind)k, &x->ps.p[i], t->dtype, put, t, e);
        }
    return st == OK ? file_sync(&t->f, e) : st;
}

enum status export_hdf5(struct export *x, const char *path, struct err *e)
{
    int64_t *offset = mem_take(CHECKPOINT_KINDS * (size_t)x->ps.n * sizeof *offset), text_at[2];
    struct target t;
    enum status st, closed;

    /* our own open first: it says better why it cannot be made */
    st = file_open(&t.f, path, FILE_CREATE, e);
    file_close(&t.f, NULL);
    if (st == OK)
        st = make_skeleton(x, path, offset, text_at, e);
    if (st == OK) {
        st = file_open(&t.f, path, FILE_UPDATE, e);
        if (st == OK)
            st = fill(x, &t, offset, text_at, e);
        closed = file_close(&t.f, e);
        st = st == OK ? closed : st;
    }
    mem_give(offset);
    return st;
}
