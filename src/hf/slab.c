#include "hf/slab.h"

static int64_t place(const struct box *b, const struct box *what, int64_t stride[BOX_MAX])
{
    int64_t at = 0, s = 1;

    for (int d = b->nd - 1; d >= 0; d--) {
        stride[d] = s;
        at += (what->off[d] - b->off[d]) * s;
        s *= b->ext[d];
    }
    return at;
}

void slab_runs_start(struct slab_runs *r, const struct box *from, const struct box *to,
                     const struct box *what)
{
    int d = what->nd;

    *r = (struct slab_runs){ .run = 1, .left = 1 };
    r->from = place(from, what, r->from_stride);
    r->to = place(to, what, r->to_stride);
    while (d > 0) {
        d--;
        r->run *= what->ext[d];
        if (what->ext[d] != from->ext[d] || what->ext[d] != to->ext[d])
            break;
    }
    r->outer = d;
    for (int i = 0; i < r->outer; i++) {
        r->ext[i] = what->ext[i];
        r->left *= what->ext[i];
    }
}

int slab_runs_next(struct slab_runs *r, int64_t *from, int64_t *to)
{
    if (r->left <= 0)
        return 0;
    r->left--;
    *from = r->from;
    *to = r->to;
    for (int d = r->outer - 1; d >= 0; d--) {
        r->from += r->from_stride[d];
        r->to += r->to_stride[d];
        if (++r->at[d] < r->ext[d])
            break;
        r->from -= r->ext[d] * r->from_stride[d];
        r->to -= r->ext[d] * r->to_stride[d];
        r->at[d] = 0;
    }
    return 1;
}
