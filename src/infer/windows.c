#include "infer/windows.h"

#include <inttypes.h>

#include "parallel/agree.h"

enum { PASS_TOKENS = 2048 };

static enum status check_ids(struct work *w, struct err *e)
{
    enum { STEP = 1 << 16 };
    const struct tokens *t = &w->tokens;
    int32_t *ids = mem_take(sizeof *ids * STEP);
    enum status st = OK;

    for (int64_t at = 0; at < t->count && st == OK; at += STEP) {
        int64_t n = min_i64(STEP, t->count - at);
        st = tokens_read(t, at, n, ids, e);
        for (int64_t i = 0; i < n && st == OK; i++)
            if (ids[i] >= w->model.vocab_size)
                st =
                    err_set(e, E_FILE,
                            "%s: token %" PRId64 " has id %d, but the model's ids are 0 .. %" PRId64
                            ": tokenize the text with the model's own tokenizer",
                            t->path, at + i, (int)ids[i], w->model.vocab_size - 1);
    }
    mem_give(ids);
    return st;
}

static void choose_batch(struct work *w)
{
    w->B = w->o->batch ? w->o->batch : max_i64(1, PASS_TOKENS / w->S);
    w->B = min_i64(w->B, w->nrows);
}

enum status windows_open(struct work *w, struct err *e)
{
    const struct infer_options *o = w->o;
    enum status st;

    if (o->ninputs != 1)
        return err_set(e, E_INPUT, "%s takes one token file at a time", w->kind->name);
    if ((st = tokens_open(&w->tokens, o->input[0], e)) != OK) {
        w->tokens.path[0] = 0;
        return st;
    }
    tokens_limit(&w->tokens, w->model.vocab_size);
    work_note(w, "tokens %s", w->tokens.hash);
    w->S = o->length ? o->length : w->model.length;
    if (w->S > w->model.positions)
        return err_set(e, E_INPUT,
                       "--sequence-length %" PRId64
                       " is above the model's max_position_embeddings = %" PRId64,
                       w->S, w->model.positions);
    w->stride = w->S;
    w->nrows = ceil_div(w->tokens.count, w->S);
    choose_batch(w);
    return w->tokens.vocab_size > w->model.vocab_size ? check_ids(w, e) : OK;
}

enum status windows_of_items(struct work *w, struct err *e)
{
    if (w->items.n == 0)
        return err_set(e, E_FILE, "%s: no line", w->o->input[0]);
    w->nrows = w->items.n;
    w->S = items_longest(&w->items);
    choose_batch(w);
    return OK;
}

struct windows_row windows_at(const struct work *w, int64_t k)
{
    int64_t first = k * w->stride, count = w->tokens.count, low, high;

    if (w->items.n) {
        int64_t n = items_length(&w->items, k), from = max_i64(1, w->items.from[k]);
        return (struct windows_row){ .tokens = n, .scored = from - 1, .nscored = n - from };
    }
    low = k == 0 ? 1 : first - w->stride + w->S + 1;
    high = min_i64(first + w->S, count - 1) + 1;
    return (struct windows_row){ .tokens = min_i64(w->S, count - first),
                                 .scored = low - first - 1,
                                 .nscored = max_i64(0, high - low) };
}

static void fill_item(struct work *w, int64_t at, int64_t length, int64_t k)
{
    const struct items *t = &w->items;
    struct batch_rows *b = &w->r.rows;
    int64_t n = items_length(t, k);

    batch_fill_none(b, at, length);
    for (int64_t i = 0; i < n; i++) {
        b->ids[at + i] = t->ids[t->first[k] + i];
        if (i > 0)
            b->labels[at + i - 1] = b->ids[at + i];
    }
}

enum status windows_fill(struct work *w, int64_t unit, struct err *e)
{
    int64_t length = w->r.s.S, n = work_rows(w, unit);
    int mask = w->o->mask >= 0 ? w->o->mask : w->model.mask;
    enum status st = OK;

    for (int64_t b = 0; b < w->r.s.B && st == OK; b++) {
        int64_t k = work_first(w, unit) + b;
        if (b >= n)
            batch_fill_none(&w->r.rows, b * length, length);
        else if (w->items.n)
            fill_item(w, b * length, length, k);
        else
            st = batch_fill_run(&w->tokens, &w->r.rows, b * length, length, k * w->stride,
                                windows_at(w, k).tokens, mask, mask, e);
    }
    return st;
}

static void fill_none(struct work *w)
{
    for (int64_t b = 0; b < w->r.s.B; b++)
        batch_fill_none(&w->r.rows, b * w->r.s.S, w->r.s.S);
}

enum status windows_run(struct work *w, const int64_t *units, int n, struct err *e)
{
    const struct batch_rows *b = &w->r.rows;
    int64_t requests = mem_requests();
    enum status st = OK;

    for (int m = 0; m < w->in_flight && st == OK; m++) {
        if (m < n)
            st = windows_fill(w, units[m], e);
        else
            fill_none(w);
        pipeline_upload(&w->r.s.pipe, m, b->ids, b->labels, b->place, b->start, b->position);
    }
    if ((st = agree_silent(w->r.g.model, st, e)) == OK)
        pipeline_evaluate(&w->r.s.pipe);
    BUG_IF(w->passes++ > 0 && mem_requests() != requests); /* a pass allocates nothing */
    return st;
}
