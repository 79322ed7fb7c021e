#include "text/merger.h"

#include <string.h>

#include "base/arena.h"

enum { SHORT = 64, PLACE_BITS = 6, RANKS_FEW = (1 << (31 - PLACE_BITS)) - 1 };
#define NONE UINT32_MAX

void merger_free(struct merger *g)
{
    mem_give(g->symbol);
    mem_give(g->next);
    mem_give(g->before);
    mem_give(g->heap);
    *g = (struct merger){ 0 };
}

static void make_room(struct merger *g, size_t n)
{
    size_t room = n + n / 2 + 256;

    if (n <= g->room)
        return;
    merger_free(g);
    g->symbol = mem_take(room * sizeof *g->symbol);
    g->next = mem_take(room * sizeof *g->next);
    g->before = mem_take(room * sizeof *g->before);
    g->room = room;
}

/* ---- symbols ---- */

/* What the library does with characters that the vocabulary lacks, its order included: a pending
 * unknown stands behind bytes that follow it. */
struct unknowns {
    int64_t id; /* -1: none pending */
};

static enum status unknown(const struct model *m, struct unknowns *u, uint32_t *to, size_t *k,
                           struct err *e)
{
    if (m->unk == -1)
        return OK;
    if (m->unk == -2)
        return err_set(e, E_INPUT,
                       "the text has a character that is not in the tokenizer's vocabulary, and "
                       "neither is its unk_token");
    if (u->id >= 0 && !m->fuse_unk)
        to[(*k)++] = (uint32_t)u->id;
    u->id = m->unk;
    return OK;
}

static int fall_back(const struct model *m, const char *p, int n, uint32_t *to, size_t *k)
{
    if (!m->byte_fallback)
        return 0;
    for (int i = 0; i < n; i++)
        if (m->byte_id[(unsigned char)p[i]] < 0)
            return 0;
    for (int i = 0; i < n; i++)
        to[(*k)++] = (uint32_t)m->byte_id[(unsigned char)p[i]];
    return 1;
}

static enum status symbols_of(const struct model *m, const char *p, size_t n, uint32_t *to,
                              size_t *k, struct err *e)
{
    struct unknowns u = { -1 };
    enum status st = OK;

    *k = 0;
    if (m->bytes) {
        for (size_t i = 0; i < n; i++)
            to[i] = (uint32_t)m->byte_id[(unsigned char)p[i]];
        *k = n;
        return OK;
    }
    for (size_t at = 0; at < n && st == OK;) {
        uint32_t c;
        int length = unicode_at(p + at, &c);

        if (m->point_id[c] >= 0) {
            if (u.id >= 0)
                to[(*k)++] = (uint32_t)u.id;
            u.id = -1;
            to[(*k)++] = (uint32_t)m->point_id[c];
        } else if (!fall_back(m, p + at, length, to, k)) {
            st = unknown(m, &u, to, k, e);
        }
        at += (size_t)length;
    }
    if (u.id >= 0)
        to[(*k)++] = (uint32_t)u.id;
    return st;
}

/* ---- few symbols: look at all pairs again and again ---- */

typedef int32_t keys __attribute__((vector_size(16), may_alias));
enum { LANES = sizeof(keys) / sizeof(int32_t), SCALAR = 24 };

struct few {
    /* Of the pair that begins here: rank << PLACE_BITS | place; FREE: none. */
    int32_t key[SHORT] __attribute__((aligned(sizeof(keys))));
    uint32_t id[SHORT]; /* what it merges to */
    uint8_t next[SHORT + 1], before[SHORT + 1];
};
#define FREE INT32_MAX

static inline void look(const struct model *m, struct few *f, const uint32_t *s, size_t at)
{
    const struct merge *g = model_merge(m, s[at], s[f->next[at]]);

    f->key[at] = g ? (int32_t)(g->rank << PLACE_BITS | at) : FREE;
    f->id[at] = g ? g->id : 0;
}

/* Keys behind the last pair are FREE, up to a whole vector. */
static void begin_few(const struct model *m, struct few *f, const unsigned char *p,
                      const uint32_t *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        f->next[i] = (uint8_t)(i + 1);
        f->before[i + 1] = (uint8_t)i;
    }
    for (size_t i = 0; i + 1 < n; i++)
        if (m->bytes) {
            const struct model_pair *g = &m->pair[p[i] * 256 + p[i + 1]];

            f->key[i] = g->rank == NONE ? FREE : (int32_t)(g->rank << PLACE_BITS | i);
            f->id[i] = g->id;
        } else {
            look(m, f, s, i);
        }
    for (size_t i = n - 1; i % LANES || i == n - 1; i++)
        f->key[i] = FREE;
}

/* Few keys one by one: a vector has to wait for the keys that were just written. */
static inline int32_t least(const struct few *f, size_t n)
{
    const keys *k = (const keys *)f->key;
    int32_t low = f->key[0];

    if (n > SCALAR) {
        keys best = k[0];

        for (size_t i = 1; i < (n + LANES - 1) / LANES; i++) {
            keys less = k[i] < best;

            best = (k[i] & less) | (best & ~less);
        }
        for (int i = 0; i < LANES; i++)
            low = best[i] < low ? best[i] : low;
        return low;
    }
    for (size_t i = 1; i + 1 < n; i++)
        low = f->key[i] < low ? f->key[i] : low;
    return low;
}

static size_t merge_few(const struct model *m, const char *piece, uint32_t *s, size_t n)
{
    struct few f;
    size_t k = 0;
    int32_t best;

    begin_few(m, &f, (const unsigned char *)piece, s, n);
    while ((best = least(&f, n)) != FREE) {
        size_t at = (size_t)best & (SHORT - 1), right = f.next[at], after = f.next[right];

        s[at] = f.id[at];
        f.next[at] = (uint8_t)after;
        f.before[after] = (uint8_t)at;
        f.key[at] = f.key[right] = FREE;
        if (after < n)
            look(m, &f, s, at);
        if (at > 0)
            look(m, &f, s, f.before[at]);
    }
    for (size_t i = 0; i < n; i = f.next[i])
        s[k++] = s[i];
    return k;
}

/* ---- many: a heap of candidates, some of them stale ---- */

static int before(const struct merger_candidate *a, const struct merger_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct merger *g, struct merger_candidate c)
{
    size_t i = g->heap_n++;

    if (i == g->heap_room) {
        size_t room = g->heap_room + g->heap_room / 2 + 256;

        g->heap = mem_grow(g->heap, g->heap_room * sizeof *g->heap, room * sizeof *g->heap);
        g->heap_room = room;
    }
    while (i > 0 && before(&c, &g->heap[(i - 1) / 4])) {
        g->heap[i] = g->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    g->heap[i] = c;
}

static struct merger_candidate heap_pop(struct merger *g)
{
    struct merger_candidate top = g->heap[0], c = g->heap[--g->heap_n];
    size_t i = 0, n = g->heap_n;

    for (size_t child = 1; child < n; child = 4 * i + 1) {
        size_t best = child;

        for (size_t k = child + 1; k < child + 4 && k < n; k++)
            if (before(&g->heap[k], &g->heap[best]))
                best = k;
        if (!before(&g->heap[best], &c))
            break;
        g->heap[i] = g->heap[best];
        i = best;
    }
    g->heap[i] = c;
    return top;
}

static void consider(const struct model *m, struct merger *g, uint32_t at)
{
    uint32_t next = g->next[at];
    const struct merge *p = next == NONE ? NULL : model_merge(m, g->symbol[at], g->symbol[next]);

    if (p)
        heap_push(g, (struct merger_candidate){ p->rank, at, p->id });
}

static size_t merge_many(const struct model *m, struct merger *g, size_t n)
{
    size_t k = 0;

    g->heap_n = 0;
    for (size_t i = 0; i < n; i++) {
        g->next[i] = i + 1 < n ? (uint32_t)i + 1 : NONE;
        g->before[i] = i ? (uint32_t)i - 1 : NONE;
    }
    for (size_t i = 0; i + 1 < n; i++)
        consider(m, g, (uint32_t)i);
    while (g->heap_n) {
        struct merger_candidate c = heap_pop(g);
        uint32_t next = g->symbol[c.at] == NONE ? NONE : g->next[c.at];
        const struct merge *p =
            next == NONE ? NULL : model_merge(m, g->symbol[c.at], g->symbol[next]);

        if (!p || p->id != c.id)
            continue;
        g->symbol[c.at] = c.id;
        g->symbol[next] = NONE;
        g->next[c.at] = g->next[next];
        if (g->next[c.at] != NONE)
            g->before[g->next[c.at]] = c.at;
        if (g->before[c.at] != NONE)
            consider(m, g, g->before[c.at]);
        consider(m, g, c.at);
    }
    for (uint32_t i = 0; i != NONE; i = g->next[i])
        g->symbol[k++] = g->symbol[i];
    return k;
}

enum status merger_run(const struct model *m, struct merger *g, const char *piece, size_t n,
                       struct ids *out, struct err *e)
{
    uint32_t near[SHORT], *s = near;
    size_t k, few = m->ranks > RANKS_FEW ? 0 : SHORT;
    enum status st;

    if (n > INT32_MAX)
        return err_set(e, E_RESOURCE,
                       "%zu bytes of text without a place where the tokenizer cuts: at most 2^31",
                       n);
    if (n > few) {
        make_room(g, n);
        s = g->symbol;
    }
    if ((st = symbols_of(m, piece, n, s, &k, e)) != OK)
        return st;
    if (k > few)
        k = merge_many(m, g, k);
    else if (k > 1)
        k = merge_few(m, piece, s, k);
    if (k > out->room - out->n)
        ids_grow(out, k);
    if (k)
        memcpy(out->at + out->n, s, k * sizeof *s);
    out->n += k;
    return OK;
}

/* A cut between two known characters that are neighbours in no merge's result is spanned by none.
 */
size_t merger_border(const struct model *m, const char *piece, size_t n, size_t at)
{
    uint32_t a, b;

    if (m->bytes) {
        for (size_t i = at + 1; i < n; i++)
            if (!model_joined(m, (unsigned char)piece[i - 1], (unsigned char)piece[i]))
                return i;
        return n;
    }
    for (size_t i = at + (size_t)unicode_at(piece + at, &a); i < n; a = b) {
        size_t k = (size_t)unicode_at(piece + i, &b);

        if (m->point_id[a] >= 0 && m->point_id[b] >= 0 && !model_joined(m, a, b))
            return i;
        i += k;
    }
    return n;
}
