#include "optim/optim.h"

enum { CHUNK = 1 << 20 }; /* elements handled at a time */

/* Rows first .. first+rows-1 of p's local box (nd 1: elements). */
static struct box rows_of(const struct param *p, int64_t first, int64_t rows)
{
    struct box b = p->box;

    b.off[0] += first;
    b.ext[0] = rows;
    return b;
}

static enum status set_param(struct optim *o, const struct param *p, optim_source *source,
                             void *context, double *values, void *typed, struct err *e)
{
    int64_t width = p->nd == 1 ? 1 : p->count / p->local[0];
    int64_t step = max_i64(1, CHUNK / width);

    for (int64_t r = 0; r < p->box.ext[0]; r += step) {
        struct box what = rows_of(p, r, min_i64(step, p->box.ext[0] - r));
        int64_t n = box_count(&what);
        struct operand at = operand_at(o->weights[p->bucket], p->at + r * width);
        enum status st = source(context, p, &what, values, e);
        if (st != OK)
            return st;
        dtype_convert(typed, o->type, values, F64, n);
        o->ops->upload(o->q, at.p, typed, (size_t)n * dtype_size(o->type));
    }
    return OK;
}

enum status optim_set_weights(struct optim *o, optim_source *source, void *context, struct err *e)
{
    int64_t most = CHUNK;
    enum status st = OK;
    double *values;
    void *typed;

    for (int i = 0; i < o->ps->n; i++) /* one row may be wider than a chunk */
        if (o->ps->p[i].nd > 1)
            most = max_i64(most, o->ps->p[i].count / o->ps->p[i].local[0]);
    values = mem_take(sizeof *values * (size_t)most);
    typed = mem_take(sizeof *values * (size_t)most);
    for (int i = 0; i < o->ps->n && st == OK; i++)
        st = set_param(o, &o->ps->p[i], source, context, values, typed, e);
    o->ops->sync(o->q);
    mem_give(values);
    mem_give(typed);
    return st;
}
