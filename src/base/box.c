#include "base/box.h"

#include "base/err.h"

#include <string.h>

struct box box_whole(int nd, const int64_t *shape)
{
    struct box b = { .nd = nd };

    BUG_IF(nd < 0 || nd > BOX_MAX);
    for (int d = 0; d < nd; d++)
        b.ext[d] = shape[d];
    return b;
}

int64_t box_count(const struct box *b)
{
    int64_t n = 1;

    for (int d = 0; d < b->nd; d++)
        n *= b->ext[d];
    return n;
}

int box_equal(const struct box *a, const struct box *b)
{
    if (a->nd != b->nd)
        return 0;
    for (int d = 0; d < a->nd; d++)
        if (a->off[d] != b->off[d] || a->ext[d] != b->ext[d])
            return 0;
    return 1;
}

int box_intersect(const struct box *a, const struct box *b, struct box *out)
{
    struct box c = { .nd = a->nd };
    int full = 1;

    BUG_IF(a->nd != b->nd);
    for (int d = 0; d < a->nd; d++) {
        int64_t end = min_i64(a->off[d] + a->ext[d], b->off[d] + b->ext[d]);

        c.off[d] = max_i64(a->off[d], b->off[d]);
        c.ext[d] = max_i64(0, end - c.off[d]);
        full = full && c.ext[d] > 0;
    }
    *out = c;
    return full;
}

static int box_inside(const struct box *in, const struct box *b)
{
    if (in->nd != b->nd)
        return 0;
    for (int d = 0; d < in->nd; d++)
        if (in->off[d] < b->off[d] || in->off[d] + in->ext[d] > b->off[d] + b->ext[d])
            return 0;
    return 1;
}

/* Place of index at[] in the row-major order of b. */
static int64_t box_place(const struct box *b, const int64_t *at)
{
    int64_t p = 0;

    for (int d = 0; d < b->nd; d++)
        p = p * b->ext[d] + at[d] - b->off[d];
    return p;
}

void box_copy(void *dst, const struct box *to_box, const void *src, const struct box *from_box,
              const struct box *what, size_t element_bytes)
{
    int64_t at[BOX_MAX], run = 1;
    int d = what->nd;

    if (box_count(what) == 0)
        return;
    BUG_IF(!box_inside(what, to_box) || !box_inside(what, from_box));
    memcpy(at, what->off, sizeof at);
    while (d > 0) { /* dimensions d.. are one piece in both; d-1 joins them, then only if whole */
        run *= what->ext[--d];
        if (what->ext[d] != to_box->ext[d] || what->ext[d] != from_box->ext[d])
            break;
    }
    for (;;) {
        size_t to = (size_t)box_place(to_box, at), from = (size_t)box_place(from_box, at);
        int k = d - 1;

        memcpy((char *)dst + to * element_bytes, (const char *)src + from * element_bytes,
               (size_t)run * element_bytes);
        while (k >= 0 && ++at[k] == what->off[k] + what->ext[k]) {
            at[k] = what->off[k];
            k--;
        }
        if (k < 0)
            return;
    }
}

/* The widest box that begins at place p of b and has at most `count` elements.
 * stride[d]: elements of one index of dimension d. */
static struct box box_widest(const struct box *b, const int64_t *stride, int64_t p, int64_t count)
{
    struct box c = *b;
    int d = 0;

    while (p % stride[d] || count < stride[d])
        d++;
    for (int k = 0; k <= d; k++) {
        int64_t i = p / stride[k] % b->ext[k];

        c.off[k] = b->off[k] + i;
        c.ext[k] = k < d ? 1 : min_i64(count / stride[d], b->ext[d] - i);
    }
    return c;
}

int box_of_run(const struct box *b, int64_t first, int64_t count, struct box out[BOX_RUN_MAX])
{
    int64_t stride[BOX_MAX], n = 1;
    int made = 0;

    for (int d = b->nd - 1; d >= 0; d--) {
        stride[d] = n;
        n *= b->ext[d];
    }
    BUG_IF(first < 0 || count < 0 || count > n - first);
    if (b->nd == 0 && count > 0)
        out[made++] = *b;
    while (b->nd > 0 && count > 0) {
        struct box c = box_widest(b, stride, first, count);

        out[made++] = c;
        first += box_count(&c);
        count -= box_count(&c);
    }
    return made;
}
