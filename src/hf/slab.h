/* The contiguous runs that `what` is made of inside two row-major boxes that hold it. */
#ifndef HF_SLAB_H
#define HF_SLAB_H
#include "base/box.h"

struct slab_runs {
    int outer;         /* dimensions that are walked; the rest is one run */
    int64_t run, left; /* elements of a run, runs left */
    int64_t ext[BOX_MAX], at[BOX_MAX];
    int64_t from_stride[BOX_MAX], to_stride[BOX_MAX], from, to;
};
/* what: inside both boxes, not empty. */
void slab_runs_start(struct slab_runs *r, const struct box *from, const struct box *to,
                     const struct box *what) LOCAL;
/* 1 and the element offset of the next run (r->run elements) in each box, in what's row-major
 * order; 0: no more. */
int slab_runs_next(struct slab_runs *r, int64_t *from, int64_t *to) LOCAL;
#endif
