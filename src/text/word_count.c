#include "text/word_count.h"

#include <string.h>

enum { ROOM_LEAST = 1 << 12, BATCH = 64, SHORT = 16 };

struct piece {
    uint64_t key[2], hash;
    const char *text;
    uint32_t n;
};

/* The high half of a product of 64 bits depends on all of them; the low half is folded in. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 p = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);

    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t hash_long(const char *text, uint32_t n)
{
    uint64_t h = n, two[2];
    uint32_t i = 0;

    for (; i + SHORT <= n; i += SHORT) {
        memcpy(two, text + i, SHORT);
        h = mix(two[0] ^ h, two[1]);
    }
    memcpy(two, text + n - SHORT, SHORT);
    return mix(two[0] ^ h, two[1]);
}

/* May read SHORT bytes at text, however short it is. */
static inline void piece_set(struct piece *p, const char *text, uint32_t n)
{
    p->text = text;
    p->n = n;
    if (n <= SHORT) {
        uint64_t lo, hi;
        unsigned low = n < 8 ? n : 8, high = n - low;

        memcpy(&lo, text, 8);
        memcpy(&hi, text + 8, 8);
        p->key[0] = lo & (~(uint64_t)0 >> (64 - 8 * low));
        p->key[1] = high ? hi & (~(uint64_t)0 >> (64 - 8 * high)) : 0;
        p->hash = mix(p->key[0] ^ n, p->key[1]);
    } else {
        p->hash = p->key[0] = hash_long(text, n);
        p->key[1] = 0;
    }
}

static inline int is_it(const struct word_count *w, const struct word_slot *s,
                        const struct piece *p)
{
    if (s->n != p->n || s->key[0] != p->key[0])
        return 0;
    return p->n <= SHORT ? s->key[1] == p->key[1] : !memcmp(w->text + s->key[1], p->text, p->n);
}

/* The slot of p, or the empty one where it belongs. */
static inline struct word_slot *find(const struct word_count *w, const struct piece *p)
{
    size_t mask = w->room - 1, i = p->hash & mask;

    while (w->slot[i].n && !is_it(w, &w->slot[i], p))
        i = (i + 1) & mask;
    return &w->slot[i];
}

static uint64_t slot_hash(const struct word_slot *s)
{
    return s->n <= SHORT ? mix(s->key[0] ^ s->n, s->key[1]) : s->key[0];
}

void *word_count_memory(struct arena *a, size_t bytes)
{
    arena_measure(a, "words", NULL);
    arena_take(a, bytes);
    if (arena_open(a, NULL) != OK)
        die(E_RESOURCE, "out of memory: %zu bytes asked for the different pieces of the texts",
            bytes);
    return arena_take_host(a, bytes);
}

static void grow(struct word_count *w, size_t room)
{
    struct arena before = w->slots;
    struct word_slot *old = w->slot;
    size_t old_room = w->room, mask = room - 1;

    w->slot = word_count_memory(&w->slots, room * sizeof *w->slot);
    w->room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].n) {
            size_t k = slot_hash(&old[i]) & mask;

            while (w->slot[k].n)
                k = (k + 1) & mask;
            w->slot[k] = old[i];
        }
    arena_close(&before);
}

/* After this `more` words can be added. */
static void room_for(struct word_count *w, size_t more)
{
    size_t room = w->room ? w->room : ROOM_LEAST;

    while ((w->used + more) * 3 > room * 2)
        room *= 2;
    if (room != w->room)
        grow(w, room);
}

static void insert(struct word_count *w, struct word_slot *s, const struct piece *p)
{
    *s = (struct word_slot){ { p->key[0], p->key[1] }, 0, p->n };
    w->used++;
    if (p->n <= SHORT)
        return;
    if (w->text_used + p->n > w->text_room) {
        size_t room = 2 * w->text_room + p->n;

        w->text = mem_grow(w->text, w->text_room, room);
        w->text_room = room;
    }
    s->key[1] = w->text_used;
    memcpy(w->text + w->text_used, p->text, p->n);
    w->text_used += p->n;
}

/* Look-ups in batches, so that the table's cache lines arrive together. */
void word_count_add(struct word_count *w, const char *text, uint32_t start, const uint32_t *ends,
                    int n)
{
    struct piece p[BATCH];

    for (int at = 0; at < n; at += BATCH) {
        int k = n - at < BATCH ? n - at : BATCH;

        room_for(w, BATCH);
        for (int i = 0; i < k; i++) {
            piece_set(&p[i], text + start, ends[at + i] - start);
            start = ends[at + i];
            __builtin_prefetch(&w->slot[p[i].hash & (w->room - 1)], 1);
        }
        for (int i = 0; i < k; i++) {
            struct word_slot *s = find(w, &p[i]);

            if (!s->n)
                insert(w, s, &p[i]);
            s->count++;
        }
    }
}

int64_t *word_count_at(struct word_count *w, const char *text, uint32_t n)
{
    struct piece p;
    struct word_slot *s;

    room_for(w, 1);
    piece_set(&p, text, n);
    s = find(w, &p);
    if (!s->n)
        insert(w, s, &p);
    return &s->count;
}

void word_count_merge(struct word_count *w, struct word_count *from)
{
    for (size_t i = 0; i < from->room; i++) {
        const struct word_slot *s = &from->slot[i];
        char two[SHORT];

        if (!s->n)
            continue;
        memcpy(two, s->key, sizeof two);
        *word_count_at(w, s->n <= SHORT ? two : from->text + s->key[1], s->n) += s->count;
    }
    word_count_close(from);
}

void word_count_close(struct word_count *w)
{
    arena_close(&w->slots);
    mem_give(w->text);
    *w = (struct word_count){ 0 };
}
