#include "layers/stage.h"

/* ---- placing ---- */

static struct operand border(struct arena *step, const struct env *e)
{
    return operand_take(step, e->Ts * e->d.D, e->t);
}

static void acts_window_place(struct acts_window *a, struct arena *step, struct arena *host,
                              const struct env *e)
{
    if (a->w.keys == 0)
        return;
    for (int f = 0; f < WINDOW_FRAMES; f++) {
        size_t start = arena_mark(step);
        a->w.frame[f].at = arena_take(step, 0);
        block_acts_place(&a->frame[f], step, e);
        a->w.first_bytes = arena_mark(step) - start;
        a->frame[f].x = border(step, e);
        a->w.bytes = arena_mark(step) - start;
    }
    window_place(&a->w, host);
}

static void stash_window_place(struct stash_window *s, struct arena *step, struct arena *host,
                               const struct env *e)
{
    if (s->w.keys == 0)
        return;
    for (int f = 0; f < WINDOW_FRAMES; f++) {
        size_t start = arena_mark(step);
        s->w.frame[f].at = arena_take(step, 0);
        block_stash_place(&s->frame[f], step, e);
        s->w.first_bytes = s->w.bytes = arena_mark(step) - start;
    }
    window_place(&s->w, host);
}

void stage_windows_place(struct acts_window *a, struct stash_window *s, struct arena *step,
                         struct arena *host, const struct env *e)
{
    acts_window_place(a, step, host, e);
    stash_window_place(s, step, host, e);
}

void stage_acts_place(struct stage_acts *a, struct arena *step, const struct env *e, int layers)
{
    a->in = border(step, e);
    if (layers > 0)
        a->out = border(step, e);
    for (int i = 0; i < layers && !a->window; i++) {
        block_acts_place(&a->block[i], step, e);
        a->block[i].x = i == 0 ? a->in : border(step, e);
    }
}

void stage_acts_share(struct stage_acts *a, struct arena *step, const struct env *e, int layers,
                      const struct block_acts *shared)
{
    a->in = a->out = border(step, e);
    for (int i = 0; i < layers; i++) {
        a->block[i] = *shared;
        a->block[i].x = a->in;
    }
}

void stage_stash_place(struct stage_stash *s, struct arena *step, const struct env *e, int layers)
{
    for (int i = 0; i < layers && !s->window; i++)
        block_stash_place(&s->block[i], step, e);
}

struct operand stage_output(const struct stage *st, const struct stage_acts *a)
{
    return st->layers > 0 ? a->out : a->in;
}

/* ---- block i is about to use what it keeps, or has used it; nothing to do without a window ----
 */

static int acts_key(const struct stage_acts *a, int i)
{
    return a->slot * a->window->w.layers + i;
}

static void acts_are_in(struct stage_acts *a, int i, int frame)
{
    a->block[i] = a->window->frame[frame];
    if (i == 0)
        a->block[i].x = a->in;
}

/* Also where the next block's input will be. */
static void acts_write(struct env *e, const struct stage *st, struct stage_acts *a, int i)
{
    if (!a->window)
        return;
    for (int k = i == 0 ? 0 : i + 1; k <= i + 1 && k < st->layers; k++)
        acts_are_in(a, k, window_write(e, &a->window->w, acts_key(a, k)));
}

static void acts_read(struct env *e, struct stage_acts *a, int i)
{
    if (!a->window)
        return;
    acts_are_in(a, i, window_read(e, &a->window->w, acts_key(a, i)));
    if (i > 0)
        window_fetch(e, &a->window->w, acts_key(a, i - 1));
}

typedef void leave_fn(struct env *e, struct window *w, int key);

static void acts_left(struct env *e, struct stage_acts *a, int i, leave_fn *leave)
{
    if (a->window)
        leave(e, &a->window->w, acts_key(a, i));
}

static int stash_key(const struct stage_stash *s, int i)
{
    return s->slot * s->window->w.layers + i;
}

static void stash_write(struct env *e, struct stage_stash *s, int i)
{
    if (s->window)
        s->block[i] = s->window->frame[window_write(e, &s->window->w, stash_key(s, i))];
}

static void stash_read(struct env *e, struct stage_stash *s, int i)
{
    if (!s->window)
        return;
    s->block[i] = s->window->frame[window_read(e, &s->window->w, stash_key(s, i))];
    if (i > 0)
        window_fetch(e, &s->window->w, stash_key(s, i - 1));
}

static void stash_left(struct env *e, struct stage_stash *s, int i, leave_fn *leave)
{
    if (s->window)
        leave(e, &s->window->w, stash_key(s, i));
}

/* ---- actions ---- */

void stage_forward(struct env *e, const struct stage *st, struct stage_acts *a, int keep,
                   struct operand g, dptr loss, double scale, const struct micro_batch *mb)
{
    if (st->embedding)
        embedding_forward(e, a->in, mb);
    for (int i = 0; i < st->layers; i++) {
        acts_write(e, st, a, i);
        block_forward(e, st->first_layer + i, &a->block[i],
                      i + 1 < st->layers ? a->block[i + 1].x : a->out, mb);
        acts_left(e, a, i, keep ? window_save : window_drop);
    }
    if (st->head)
        head_forward(e, stage_output(st, a), g, loss, scale, mb);
}

void stage_backward(struct env *e, const struct stage *st, struct stage_acts *a,
                    struct stage_stash *s, struct operand g, int weights,
                    const struct micro_batch *mb)
{
    for (int i = st->layers - 1; i >= 0; i--) {
        int k = weights ? 0 : i;
        acts_read(e, a, i);
        stash_write(e, s, k);
        block_grad_input(e, st->first_layer + i, &a->block[i], &s->block[k], g, mb);
        if (weights)
            block_grad_weight(e, st->first_layer + i, &a->block[i], &s->block[k]);
        stash_left(e, s, k, window_save);
        acts_left(e, a, i, weights ? window_drop : window_keep);
    }
    if (st->embedding)
        embedding_grad(e, g, mb);
}

void stage_grad_weight(struct env *e, const struct stage *st, struct stage_acts *a,
                       struct stage_stash *s)
{
    for (int i = st->layers - 1; i >= 0; i--) {
        acts_read(e, a, i);
        stash_read(e, s, i);
        block_grad_weight(e, st->first_layer + i, &a->block[i], &s->block[i]);
        stash_left(e, s, i, window_drop);
        acts_left(e, a, i, window_drop);
    }
}
