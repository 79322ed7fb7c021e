#include "text/words.h"

#include "base/arena.h"

enum { TEXT_MAX = 8 << 20, MORE_MAX = 2 << 20 };

static void place_tables(struct words *w)
{
    w->word = arena_take_host(&w->arena, ((size_t)2 << WORDS_BITS) * sizeof *w->word);
    w->longer = arena_take_host(&w->arena, ((size_t)1 << WORDS_LONG_BITS) * sizeof *w->longer);
}

void words_open(struct words *w)
{
    struct err e = { "" };

    *w = (struct words){ 0 };
    arena_measure(&w->arena, "words", NULL);
    place_tables(w);
    if (arena_open(&w->arena, &e) != OK)
        die(E_RESOURCE, "%s", e.text);
    place_tables(w);
}

void words_close(struct words *w)
{
    arena_close(&w->arena);
    buffer_free(&w->text);
    ids_free(&w->more);
}

static void forget(struct words *w)
{
    memset(w->word, 0, ((size_t)2 << WORDS_BITS) * sizeof *w->word);
    memset(w->longer, 0, ((size_t)1 << WORDS_LONG_BITS) * sizeof *w->longer);
    w->text.n = w->more.n = 0;
}

static struct word_long *place(const struct words *w, uint64_t hash)
{
    return &w->longer[hash & ((1u << WORDS_LONG_BITS) - 1)];
}

static uint64_t long_hash(const char *piece, size_t n)
{
    uint64_t h = strings_hash(piece, n);

    return h ? h : 1;
}

static void add(struct ids *out, const uint32_t *ids, size_t n)
{
    if (n > out->room - out->n)
        ids_grow(out, n);
    memcpy(out->at + out->n, ids, n * sizeof *ids);
    out->n += n;
}

int words_get(const struct words *w, const char *piece, size_t n, struct ids *out)
{
    uint64_t key[2];
    const struct word *b;
    const struct word_long *l;
    uint64_t h;

    if (n <= WORDS_KEY) {
        words_key(piece, n, key);
        b = words_bucket(w, key);
        for (int i = 0; i < 2; i++)
            if (b[i].key[0] == key[0] && b[i].key[1] == key[1]) {
                add(out, b[i].n > 3 ? w->more.at + b[i].id[0] : b[i].id, b[i].n);
                return 1;
            }
        return 0;
    }
    h = long_hash(piece, n);
    l = place(w, h);
    if (l->hash != h || l->length != n || memcmp(w->text.at + l->at, piece, n) != 0)
        return 0;
    add(out, w->more.at + l->ids_at, l->n);
    return 1;
}

void words_put(struct words *w, const char *piece, size_t n, const uint32_t *ids, size_t k)
{
    struct word t = { .n = (uint32_t)k };
    struct word *b;
    uint64_t h;

    if (w->more.n + k > MORE_MAX || w->text.n + n > TEXT_MAX)
        forget(w);
    if (n <= WORDS_KEY) {
        words_key(piece, n, t.key);
        if (k > 3) {
            t.id[0] = (uint32_t)w->more.n;
            add(&w->more, ids, k);
        } else if (k) {
            memcpy(t.id, ids, k * sizeof *ids);
        }
        b = words_bucket(w, t.key);
        b[1] = b[0];
        b[0] = t;
        return;
    }
    h = long_hash(piece, n);
    *place(w, h) =
        (struct word_long){ h, (uint32_t)w->text.n, (uint32_t)n, (uint32_t)w->more.n, (uint32_t)k };
    buffer_add(&w->text, piece, n);
    add(&w->more, ids, k);
}
