#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "hf/safetensors.h"
#include "infer/windows.h"
#include "store/h5.h"

struct logits {
    void *in, *out; /* [head_rows, Vp], [head_rows, V]: the leader's */
};

static int ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);

    return n >= m && strcmp(path + n - m, ending) == 0;
}

/* ---- inputs ---- */

static enum status read_line(void *context, const json_t *object, const char *where, struct err *e)
{
    struct work *w = context;
    const json_t *ids = json_object_get(object, "ids");
    struct items_limits limits = { w->model.vocab_size, w->model.positions };
    enum status st;

    if (!ids)
        return err_set(e, E_FILE, "%s: no member \"ids\", as in {\"ids\": [1, 2, 3]}", where);
    items_begin(&w->items, w->items.n);
    st = items_put_list(&w->items, ids, where, e);
    return st == OK ? items_check(&w->items, &limits, where, e) : st;
}

static enum status read(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st = OK;

    if (!ends_in(o->out, ".safetensors") && !ends_in(o->out, ".h5") && !ends_in(o->out, ".hdf5"))
        return err_set(e, E_INPUT,
                       "%s: logits go into a file whose name ends in .safetensors, .h5 or .hdf5",
                       o->out);
    if (!work_is_jsonl(o->input[0]))
        return windows_open(w, e);
    if (o->length)
        return err_set(e, E_INPUT,
                       "--sequence-length goes with a token file: a line is a sequence");
    for (int i = 0; i < o->ninputs && st == OK; i++) {
        st = work_note_input(w, o->input[i], e);
        if (st == OK)
            st = items_read(o->input[i], read_line, w, e);
    }
    return st == OK ? windows_of_items(w, e) : st;
}

static void ask(struct work *w)
{
    w->use.logits = 1;
}

/* ---- passes ---- */

static enum status begin(struct work *w, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct logits *own = w->own;
    size_t rows = (size_t)env->head_rows * dtype_size(env->stat);

    (void)e;
    if (!work_leads(w))
        return OK;
    own->in = mem_take(rows * (size_t)env->d.Vp);
    own->out = mem_take(rows * (size_t)env->d.V);
    return OK;
}

static void end(struct work *w)
{
    struct logits *own = w->own;

    mem_give(own->in);
    mem_give(own->out);
}

/* n rows of the micro-batch from row t on, which were downloaded: those that are tokens of the
 * unit, and zeros behind a sequence's end. */
static enum status put_rows(struct work *w, int64_t unit, int64_t t, int64_t n, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct logits *own = w->own;
    size_t bytes = (size_t)env->d.V * dtype_size(env->stat), filled = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t b = (t + i) / env->S, at = (t + i) % env->S;
        char *to = (char *)own->out + filled;
        const void *from;
        if (b >= work_rows(w, unit) || at >= w->S)
            continue;
        from = head_unpack(env, own->in, n, i, to);
        if (at >= windows_at(w, work_first(w, unit) + b).tokens)
            memset(to, 0, bytes);
        else if (from != to)
            memcpy(to, from, bytes);
        filled += bytes;
    }
    return parts_put(&w->parts, own->out, (int64_t)filled, e);
}

static int64_t unit_bytes(const struct work *w, int64_t unit)
{
    const struct env *env = &w->r.s.env;

    return work_rows(w, unit) * w->S * env->d.V * (int64_t)dtype_size(env->stat);
}

static enum status keep(struct work *w, int64_t unit, const struct micro_batch *mb, struct err *e)
{
    const struct env *env = &w->r.s.env;
    struct logits *own = w->own;
    enum status st = parts_begin(&w->parts, unit, unit_bytes(w, unit), e);

    for (int64_t t = 0; t < env->T && st == OK; t += env->head_rows) {
        int64_t n = min_i64(env->head_rows, env->T - t);
        env->ops->download(env->q, own->in, operand_at(mb->logits, t * env->d.Vp).p,
                           (size_t)(n * env->d.Vp) * dtype_size(env->stat));
        env->ops->sync(env->q);
        st = put_rows(w, unit, t, n, e);
    }
    return st == OK ? parts_end(&w->parts, e) : st;
}

static enum status pass(struct work *w, const int64_t *units, int n, struct err *e)
{
    enum status st = windows_run(w, units, n, e);

    for (int m = 0; m < n && st == OK && work_leads(w); m++)
        st = keep(w, units[m], &w->r.s.pipe.mb[m], e);
    return st;
}

/* ---- the file ---- */

enum { LOGITS, LENGTHS, TENSORS, CHUNK = 1 << 20 };

struct target { /* HDF5 or safetensors */
    struct st_writer *st;
    struct file f;
    struct st_tensor tensor[TENSORS];
};

static enum status target_open(struct target *t, const struct work *w, const char *path,
                               struct err *e)
{
    struct h5 *h = NULL;
    enum status st;

    memset(t, 0, sizeof *t);
    t->f.fd = -1;
    t->tensor[LOGITS] = (struct st_tensor){
        .name = "logits", .dtype = w->r.s.env.stat, .nd = 3, .shape = { w->nrows, w->S, w->r.s.d.V }
    };
    t->tensor[LENGTHS] =
        (struct st_tensor){ .name = "lengths", .dtype = I64, .nd = 1, .shape = { w->nrows } };
    if (ends_in(w->o->out, ".safetensors"))
        return st_writer_open(&t->st, path, t->tensor, TENSORS, e);
    st = h5_create(&h, path, 4096, 0, e);
    for (int i = 0; i < TENSORS && st == OK; i++)
        st = h5_dataset(h, t->tensor[i].name, t->tensor[i].dtype, t->tensor[i].nd,
                        t->tensor[i].shape, &t->tensor[i].begin, e);
    if (st == OK)
        st = h5_close(h, e);
    else
        h5_close(h, NULL);
    return st == OK ? file_open(&t->f, path, FILE_UPDATE, e) : st;
}

static enum status target_put(struct target *t, int i, int64_t first, const void *data, int64_t n,
                              struct err *e)
{
    int64_t size = (int64_t)dtype_size(t->tensor[i].dtype);

    if (t->st)
        return st_writer_put(t->st, i, first, data, n, e);
    return file_write_at(&t->f, data, (size_t)(n * size), t->tensor[i].begin + first * size, e);
}

static enum status target_close(struct target *t, struct err *e)
{
    enum status st;

    if (t->st)
        return st_writer_close(t->st, e);
    st = file_sync(&t->f, e);
    return st == OK ? file_close(&t->f, e) : st;
}

static enum status copy_unit(struct work *w, struct target *t, int64_t unit, void *buffer,
                             struct err *e)
{
    int64_t size = (int64_t)dtype_size(w->r.s.env.stat);
    int64_t first = work_first(w, unit) * w->S * w->r.s.d.V, bytes = unit_bytes(w, unit);
    enum status st = OK;

    for (int64_t at = 0; at < bytes && st == OK; at += CHUNK) {
        int64_t n = min_i64(CHUNK, bytes - at);
        st = parts_read(&w->parts, unit, at, buffer, n, e);
        if (st == OK)
            st = target_put(t, LOGITS, first + at / size, buffer, n / size, e);
    }
    return st;
}

static enum status finish(struct work *w, const char *path, struct err *e)
{
    struct target t;
    void *buffer = mem_take(CHUNK);
    enum status st = target_open(&t, w, path, e);

    for (int64_t u = 0; u < w->units && st == OK; u++)
        st = copy_unit(w, &t, u, buffer, e);
    for (int64_t k = 0; k < w->nrows && st == OK; k++) {
        int64_t n = windows_at(w, k).tokens;
        st = target_put(&t, LENGTHS, k, &n, 1, e);
    }
    mem_give(buffer);
    if (st == OK)
        st = target_close(&t, e);
    if (st == OK)
        say("%s: logits [%lld, %lld, %lld], %s", w->o->out, (long long)w->nrows, (long long)w->S,
            (long long)w->r.s.d.V, dtype_name(w->r.s.env.stat));
    return st;
}

enum status infer_logits(struct comm *world, const struct infer_options *o)
{
    static const struct work_kind kind = { .name = "logits",
                                           .read = read,
                                           .ask = ask,
                                           .begin = begin,
                                           .pass = pass,
                                           .finish = finish,
                                           .end = end };
    struct logits own = { 0 };

    return work_run(world, o, &kind, &own);
}
