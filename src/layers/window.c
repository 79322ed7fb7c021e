#include "layers/window.h"

/* Points: of each frame the last operation that used it and the last copy into it, of each key the
 * copy to its home. */
static int point_used(const struct window *w, int frame)
{
    return w->point + frame;
}
static int point_fetched(const struct window *w, int frame)
{
    return w->point + WINDOW_FRAMES + frame;
}
static int point_saved(const struct window *w, int key)
{
    return w->point + 2 * WINDOW_FRAMES + key;
}

int window_points(const struct window *w)
{
    return w->keys > 0 ? 2 * WINDOW_FRAMES + w->keys : 0;
}

void window_init(struct window *w, int slots, int layers, int point)
{
    *w = (struct window){ .keys = slots * layers, .layers = layers, .point = point };
    w->home = mem_take(sizeof *w->home * (size_t)w->keys);
    for (int f = 0; f < WINDOW_FRAMES; f++)
        w->frame[f].holds = w->frame[f].leaving = -1;
}

void window_free(struct window *w)
{
    mem_give(w->home);
}

static size_t bytes_of(const struct window *w, int key)
{
    return key % w->layers == 0 ? w->first_bytes : w->bytes;
}

void window_place(struct window *w, struct arena *host)
{
    for (int k = 0; k < w->keys; k++)
        w->home[k] = arena_take(host, bytes_of(w, k));
}

static int frame_of(const struct window *w, int key)
{
    for (int f = 0; f < WINDOW_FRAMES; f++)
        if (w->frame[f].holds == key)
            return f;
    return -1;
}

/* The frame that was taken longest ago now holds the key. Lane l, which will write it, waits for
 * the copy out of it. */
static int take(struct env *e, struct window *w, int key, enum ops_lane l)
{
    int oldest = 0;
    struct window_frame *f;

    for (int i = 1; i < WINDOW_FRAMES; i++)
        if (w->frame[i].taken < w->frame[oldest].taken)
            oldest = i;
    f = &w->frame[oldest];
    if (f->leaving >= 0)
        e->ops->lanes->wait(e->q, l, point_saved(w, f->leaving));
    *f = (struct window_frame){ f->at, .holds = key, .leaving = -1, .taken = ++w->clock };
    return oldest;
}

int window_write(struct env *e, struct window *w, int key)
{
    return take(e, w, key, LANE_COMPUTE);
}

int window_fetch(struct env *e, struct window *w, int key)
{
    const struct lanes *lanes = e->ops->lanes;
    int f = frame_of(w, key);

    if (f >= 0) {
        w->frame[f].taken = ++w->clock;
        return f;
    }
    f = take(e, w, key, LANE_IN);
    lanes->wait(e->q, LANE_IN, point_used(w, f));
    lanes->wait(e->q, LANE_IN, point_saved(w, key));
    lanes->copy(e->q, LANE_IN, w->frame[f].at, w->home[key], bytes_of(w, key));
    lanes->mark(e->q, LANE_IN, point_fetched(w, f));
    w->frame[f].arriving = 1;
    return f;
}

int window_read(struct env *e, struct window *w, int key)
{
    int f = window_fetch(e, w, key);

    if (w->frame[f].arriving)
        e->ops->lanes->wait(e->q, LANE_COMPUTE, point_fetched(w, f));
    w->frame[f].arriving = 0;
    return f;
}

static int leave(struct env *e, struct window *w, int key)
{
    int f = frame_of(w, key);

    BUG_IF(f < 0);
    e->ops->lanes->mark(e->q, LANE_COMPUTE, point_used(w, f));
    return f;
}

void window_save(struct env *e, struct window *w, int key)
{
    const struct lanes *lanes = e->ops->lanes;
    int f = leave(e, w, key);

    lanes->wait(e->q, LANE_OUT, point_used(w, f));
    lanes->copy(e->q, LANE_OUT, w->home[key], w->frame[f].at, bytes_of(w, key));
    lanes->mark(e->q, LANE_OUT, point_saved(w, key));
    w->frame[f].leaving = key;
}

void window_keep(struct env *e, struct window *w, int key)
{
    leave(e, w, key);
}

void window_drop(struct env *e, struct window *w, int key)
{
    w->frame[leave(e, w, key)].holds = -1;
}

void window_settle(struct env *e, struct window *w)
{
    for (int f = 0; f < WINDOW_FRAMES; f++) {
        if (w->frame[f].leaving >= 0)
            e->ops->lanes->wait(e->q, LANE_COMPUTE, point_saved(w, w->frame[f].leaving));
        w->frame[f].leaving = -1;
    }
}
