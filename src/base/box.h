/* Slabs of row-major arrays: off[d] .. off[d]+ext[d]-1 in each of nd dimensions. */
#ifndef BASE_BOX_H
#define BASE_BOX_H
#include "base/types.h"

enum { BOX_MAX = 4, BOX_RUN_MAX = 2 * BOX_MAX - 1 };

struct box {
    int nd;
    int64_t off[BOX_MAX], ext[BOX_MAX];
};

struct box box_whole(int nd, const int64_t *shape) LOCAL;
int64_t box_count(const struct box *b) LOCAL;
int box_equal(const struct box *a, const struct box *b) LOCAL;
/* 0 if empty */
int box_intersect(const struct box *a, const struct box *b, struct box *out) LOCAL;
/* Copy the elements of `what` (inside both) from src, which holds from_box row-major, to dst,
 * which holds to_box. */
void box_copy(void *dst, const struct box *to_box, const void *src, const struct box *from_box,
              const struct box *what, size_t element_bytes) LOCAL;
/* Elements first .. first+count-1 of b's own row-major order as at most 2 nd - 1 boxes, in order.
 * Returns how many. */
int box_of_run(const struct box *b, int64_t first, int64_t count,
               struct box out[BOX_RUN_MAX]) LOCAL;
#endif
