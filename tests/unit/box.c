/* Properties over random boxes; sizes: 4,000 (soak: 400,000). */
#include "base/box.h"

#include "base/rng.h"
#include "tests/tap.h"

static uint64_t calls;

/* 0 .. n-1 */
static int64_t draw(int64_t n)
{
    return (int64_t)(rng_u64(1, 2, calls++) % (uint64_t)n);
}

static struct box draw_inside(const struct box *b, int empty_too)
{
    struct box c = { .nd = b->nd };

    for (int d = 0; d < b->nd; d++) {
        c.off[d] = b->off[d] + draw(b->ext[d]);
        c.ext[d] = 1 + draw(b->off[d] + b->ext[d] - c.off[d]);
        if (empty_too && draw(20) == 0)
            c.ext[d] = 0;
    }
    return c;
}

static struct box draw_shape(void)
{
    int64_t shape[BOX_MAX];
    int nd = 1 + (int)draw(BOX_MAX);

    for (int d = 0; d < nd; d++)
        shape[d] = 1 + draw(6);
    return box_whole(nd, shape);
}

/* Number of the element at[] in b's order, -1 outside. */
static int64_t place(const struct box *b, const int64_t *at)
{
    int64_t p = 0;

    for (int d = 0; d < b->nd; d++) {
        if (at[d] < b->off[d] || at[d] >= b->off[d] + b->ext[d])
            return -1;
        p = p * b->ext[d] + at[d] - b->off[d];
    }
    return p;
}

/* The n-th index of b. */
static void index_of(const struct box *b, int64_t n, int64_t *at)
{
    for (int d = b->nd - 1; d >= 0; d--) {
        at[d] = b->off[d] + n % b->ext[d];
        n /= b->ext[d];
    }
}

static int check_intersection(void)
{
    struct box whole = draw_shape(), a = draw_inside(&whole, 1), b = draw_inside(&whole, 1), c;
    int64_t at[BOX_MAX], n = 0;
    int some = box_intersect(&a, &b, &c);

    for (int64_t i = 0; i < box_count(&whole); i++) {
        int both;

        index_of(&whole, i, at);
        both = place(&a, at) >= 0 && place(&b, at) >= 0;
        if (both != (place(&c, at) >= 0))
            return 0;
        n += both;
    }
    return n == box_count(&c) && some == (n > 0) && box_equal(&c, &c);
}

static int check_copy(void)
{
    struct box whole = draw_shape(), from = draw_inside(&whole, 0), to = draw_inside(&whole, 0), w;
    int16_t src[1296], dst[1296];
    int64_t at[BOX_MAX];

    if (!box_intersect(&from, &to, &w))
        return 1;
    w = draw_inside(&w, 1);
    for (int i = 0; i < 1296; i++) {
        src[i] = (int16_t)i;
        dst[i] = -1;
    }
    box_copy(dst, &to, src, &from, &w, sizeof *src);
    for (int64_t i = 0; i < 1296; i++) {
        int64_t want = -1;

        if (i < box_count(&to)) {
            index_of(&to, i, at);
            want = place(&w, at) >= 0 ? place(&from, at) : -1;
        }
        if (dst[i] != want)
            return 0;
    }
    return 1;
}

static int check_run(void)
{
    struct box whole = draw_shape(), b = draw_inside(&whole, 0), out[BOX_RUN_MAX];
    int64_t n = box_count(&b), first = draw(n), count = draw(n - first + 1), p = first, at[BOX_MAX];
    int made = box_of_run(&b, first, count, out);

    if (made > 2 * b.nd - 1 || (count == 0) != (made == 0))
        return 0;
    for (int k = 0; k < made; k++)
        for (int64_t i = 0; i < box_count(&out[k]); i++) {
            index_of(&out[k], i, at);
            if (place(&b, at) != p++)
                return 0;
        }
    return p == first + count;
}

static void test_fixed(void)
{
    int64_t shape[] = { 4, 3, 5 }, cube[] = { 3, 3, 3, 3 };
    struct box b = box_whole(3, shape), scalar = box_whole(0, NULL), c, out[BOX_RUN_MAX];
    struct box middle = { 3, { 1, 0, 0 }, { 2, 3, 5 } };
    int made = box_of_run(&b, 7, 45, out);

    tap_ok(box_count(&b) == 60 && box_count(&scalar) == 1, "counts");
    tap_ok(made == 5 && box_equal(&out[2], &middle), "5 boxes, the whole rows in the middle");
    c = box_whole(4, cube);
    tap_ok(box_of_run(&c, 1, 79, out) == BOX_RUN_MAX, "all but the ends: 7 boxes");
    tap_ok(box_of_run(&b, 0, 60, out) == 1 && box_equal(&out[0], &b), "all of it is one box");
    tap_ok(box_of_run(&scalar, 0, 1, out) == 1 && out[0].nd == 0, "a scalar");
}

int main(void)
{
    int n = tap_soak() ? 400000 : 4000, good[3] = { 0 };

    tap_plan(8);
    test_fixed();
    for (int i = 0; i < n; i++) {
        good[0] += check_intersection();
        good[1] += check_copy();
        good[2] += check_run();
    }
    tap_ok(good[0] == n, "box_intersect: %d of %d", good[0], n);
    tap_ok(good[1] == n, "box_copy: %d of %d", good[1], n);
    tap_ok(good[2] == n, "box_of_run: %d of %d", good[2], n);
    return tap_done();
}
