#include "convert/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static void shape_text(char *buf, size_t size, int nd, const int64_t *shape)
{
    size_t n = (size_t)snprintf(buf, size, "[");

    for (int i = 0; i < nd && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
}

static int same_shape(const struct st_tensor *t, const struct param *p)
{
    int same = t->nd == p->nd;

    for (int i = 0; same && i < p->nd; i++)
        same = t->shape[i] == p->global[i];
    return same;
}

/* Tensors that other programs write and that hold nothing of the model. */
static int ignored(const struct params *ps, const char *name)
{
    if (strstr(name, "rotary_emb.inv_freq"))
        return 1;
    if (ps->d.tied && strcmp(name, param_rows[P_HEAD].hf_name) == 0) {
        warn("init_from: '%s' is ignored, the model's head is tied to its embedding", name);
        return 1;
    }
    return 0;
}

static int known(const struct params *ps, const char *name)
{
    for (int i = 0; i < ps->n; i++)
        if (strcmp(ps->p[i].name, name) == 0)
            return 1;
    return 0;
}

static enum status check_tensors(const struct st_model *m, const struct params *ps, const char *dir,
                                 struct err *e)
{
    char want[64], has[64];

    for (int i = 0; i < ps->n; i++) {
        const struct param *p = &ps->p[i];
        const struct st_tensor *t = st_find(m, p->name);
        shape_text(want, sizeof want, p->nd, p->global);
        if (!t)
            return err_set(e, E_FILE, "init_from '%s': tensor '%s' %s is missing", dir, p->name,
                           want);
        shape_text(has, sizeof has, t->nd, t->shape);
        if (!same_shape(t, p))
            return err_set(e, E_FILE,
                           "init_from '%s': tensor '%s' has shape %s, config.json asks for %s", dir,
                           p->name, has, want);
        if (!dtype_is_float(t->dtype))
            return err_set(e, E_FILE,
                           "init_from '%s': tensor '%s' is %s, expected a floating-point type", dir,
                           p->name, dtype_name(t->dtype));
    }
    for (int i = 0; i < m->n; i++)
        if (!known(ps, m->tensor[i].name) && !ignored(ps, m->tensor[i].name))
            return err_set(e, E_FILE,
                           "init_from '%s': the model has no place for tensor '%s': a "
                           "feature that this build lacks, or another model's file",
                           dir, m->tensor[i].name);
    return OK;
}

enum status import_check(const char *dir, const struct dims *d, struct err *e)
{
    struct params ps;
    struct st_model m;
    enum status st = st_open(&m, dir, e);

    if (st != OK)
        return st;
    params_build_whole(&ps, d);
    st = check_tensors(&m, &ps, dir, e);
    params_free(&ps);
    st_close(&m);
    return st;
}

static enum status read_slab(void *context, const struct param *p, const struct box *what,
                             double *out, struct err *e)
{
    const struct st_model *m = context;
    const struct st_tensor *t = st_find(m, p->name);

    if (!t)
        return err_set(e, E_FILE, "tensor '%s' is missing", p->name);
    return st_read_box(m, t, what, out, F64, e);
}

enum status import_weights(const char *dir, struct optim *o, struct err *e)
{
    struct st_model m;
    enum status st = st_open(&m, dir, e);

    if (st != OK)
        return st;
    st = optim_set_masters(o, read_slab, &m, e);
    st_close(&m);
    return st;
}
