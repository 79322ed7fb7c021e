#include "text/bpe_pairs.h"

#include <string.h>

#include "base/arena.h"

/* ---- counts: open addressing, linear ---- */

enum { COUNTS_LEAST = 1 << 12 };

static inline size_t home(uint64_t pair, size_t room)
{
    uint64_t h = pair * 0x9e3779b97f4a7c15u;

    return (size_t)(h ^ h >> 32) & (room - 1);
}

/* The slot of the pair, or the free one (count 0, pair 0) where it belongs. */
static struct pair_count *find(const struct pair_counts *c, uint64_t pair)
{
    size_t i = home(pair, c->room);

    while (c->slot[i].pair != ~pair && c->slot[i].pair)
        i = (i + 1) & (c->room - 1);
    return &c->slot[i];
}

static void rebuild(struct pair_counts *c)
{
    struct pair_counts old = *c;
    size_t live = 0;

    for (size_t i = 0; i < old.room; i++)
        live += old.slot[i].count != 0;
    c->room = COUNTS_LEAST;
    while (c->room < 2 * live + 1)
        c->room *= 2;
    c->used = live;
    c->slot = mem_take(c->room * sizeof *c->slot);
    for (size_t i = 0; i < old.room; i++)
        if (old.slot[i].count)
            *find(c, ~old.slot[i].pair) = old.slot[i];
    mem_give(old.slot);
}

void pair_counts_add(struct pair_counts *c, uint64_t pair, int64_t change)
{
    struct pair_count *s;

    if (4 * (c->used + 1) > 3 * c->room)
        rebuild(c);
    s = find(c, pair);
    if (!s->pair) {
        s->pair = ~pair; /* never 0: tokens are below 2^31 */
        c->used++;
    }
    s->count += change;
}

int64_t pair_counts_get(const struct pair_counts *c, uint64_t pair)
{
    return c->room ? find(c, pair)->count : 0;
}

void pair_counts_close(struct pair_counts *c)
{
    mem_give(c->slot);
    *c = (struct pair_counts){ 0 };
}

/* ---- lists ---- */

enum { CHUNK = 1 << 16 }; /* words */

static void chunk_open(struct word_lists *l, int32_t n)
{
    int32_t i = 0;

    if (l->free > 0) {
        while (l->chunk[i].word)
            i++;
        l->free--;
    } else {
        if (l->nchunks == l->room) {
            int32_t room = l->room ? 2 * l->room : 64;

            l->chunk = mem_grow(l->chunk, (size_t)l->room * sizeof *l->chunk,
                                (size_t)room * sizeof *l->chunk);
            l->room = room;
        }
        i = l->nchunks++;
    }
    l->chunk[i] = (struct chunk){ mem_take((size_t)n * sizeof(uint32_t)), 0 };
    l->last = i;
    l->used = 0;
}

struct word_list word_lists_take(struct word_lists *l, int32_t n)
{
    struct word_list list;

    if (!l->nchunks || !l->chunk[l->last].word || l->used + (int64_t)n > CHUNK)
        chunk_open(l, n > CHUNK ? n : CHUNK);
    list = (struct word_list){ l->chunk[l->last].word + l->used, n, l->last };
    l->used = n > CHUNK ? CHUNK : l->used + n;
    l->chunk[l->last].lists++;
    return list;
}

void word_lists_drop(struct word_lists *l, const struct word_list *list)
{
    struct chunk *c = &l->chunk[list->chunk];

    if (--c->lists > 0)
        return;
    mem_give(c->word);
    c->word = NULL;
    l->free++;
}

void word_lists_close(struct word_lists *l)
{
    for (int32_t i = 0; i < l->nchunks; i++)
        mem_give(l->chunk[i].word);
    mem_give(l->chunk);
    *l = (struct word_lists){ 0 };
}

/* ---- queue ---- */

static inline int before(const struct pair_entry *a, const struct pair_entry *b)
{
    return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static void room_for_one(struct pair_entries *v)
{
    size_t room = v->room ? v->room + v->room / 2 : 1024;

    if (v->n < v->room)
        return;
    v->at = mem_grow(v->at, v->room * sizeof *v->at, room * sizeof *v->at);
    v->room = room;
}

static void heap_push(struct pair_entries *v, const struct pair_entry *e)
{
    size_t i = v->n;

    room_for_one(v);
    v->n++;
    for (; i > 0 && before(e, &v->at[(i - 1) / 2]); i = (i - 1) / 2)
        v->at[i] = v->at[(i - 1) / 2];
    v->at[i] = *e;
}

static void heap_pop(struct pair_entries *v, struct pair_entry *e)
{
    struct pair_entry last;
    size_t i = 0, child;

    *e = v->at[0];
    last = v->at[--v->n];
    while ((child = 2 * i + 1) < v->n) {
        if (child + 1 < v->n && before(&v->at[child + 1], &v->at[child]))
            child++;
        if (!before(&v->at[child], &last))
            break;
        v->at[i] = v->at[child];
        i = child;
    }
    v->at[i] = last;
}

void pair_queue_push(struct pair_queue *q, const struct pair_entry *e)
{
    if (e->count >= q->floor) {
        heap_push(&q->near, e);
        return;
    }
    room_for_one(&q->far);
    q->far.at[q->far.n++] = *e;
}

/* Lowers the floor so that some become near. */
static void bring_near(struct pair_queue *q)
{
    int64_t most = 0;
    size_t kept = 0;

    for (size_t i = 0; i < q->far.n; i++)
        most = max_i64(most, q->far.at[i].count);
    q->floor = most - most / 4;
    for (size_t i = 0; i < q->far.n; i++)
        if (q->far.at[i].count >= q->floor)
            heap_push(&q->near, &q->far.at[i]);
        else
            q->far.at[kept++] = q->far.at[i];
    q->far.n = kept;
}

int pair_queue_pop(struct pair_queue *q, struct pair_entry *e)
{
    if (!q->near.n && q->far.n)
        bring_near(q);
    if (!q->near.n)
        return 0;
    heap_pop(&q->near, e);
    return 1;
}

void pair_queue_close(struct pair_queue *q)
{
    mem_give(q->near.at);
    mem_give(q->far.at);
    *q = (struct pair_queue){ .floor = INT64_MAX };
}
