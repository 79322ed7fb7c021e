#include "optim/optim.h"

enum { CHUNK = 1 << 20 }; /* elements handled at a time */

int64_t piece_real(const struct piece *p)
{
    int64_t real = box_count(&p->p->box);

    /* padding is whole rows at the end, so the real part is the head of the local elements */
    for (int d = 1; d < p->p->nd && real; d++)
        BUG_IF(p->p->box.ext[d] != p->p->local[d]);
    return max_i64(0, min_i64(p->count, real - p->first));
}

int piece_boxes(const struct piece *p, int64_t at, int64_t n, struct box out[BOX_RUN_MAX])
{
    return n > 0 ? box_of_run(&p->p->box, p->first + at, n, out) : 0;
}

/* Elements at .. at+n-1 of the piece's real ones. */
static enum status set_run(struct optim *o, const struct piece *p, int64_t at, int64_t n,
                           optim_source *source, void *context, double *values, void *typed,
                           struct err *e)
{
    struct box box[BOX_RUN_MAX];
    int boxes = piece_boxes(p, at, n, box);
    int64_t done = 0;

    for (int i = 0; i < boxes; i++) {
        enum status st = source(context, p->p, &box[i], values + done, e);
        if (st != OK)
            return st;
        done += box_count(&box[i]);
    }
    dtype_convert(typed, o->type, values, F64, n);
    o->state_ops->upload(o->state_q, operand_at(p->master, at).p, typed,
                         (size_t)n * dtype_size(o->type));
    return OK;
}

enum status optim_set_masters(struct optim *o, optim_source *source, void *context, struct err *e)
{
    double *values = mem_take(sizeof *values * CHUNK), *typed = mem_take(sizeof *typed * CHUNK);
    enum status st = OK;

    for (int i = 0; i < o->npieces && st == OK; i++) {
        const struct piece *p = &o->pieces[i];
        int64_t real = piece_real(p);
        for (int64_t at = 0; at < real && st == OK; at += CHUNK)
            st = set_run(o, p, at, min_i64(CHUNK, real - at), source, context, values, typed, e);
    }
    o->state_ops->sync(o->state_q);
    mem_give(values);
    mem_give(typed);
    return st;
}
