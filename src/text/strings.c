#include "text/strings.h"

static uint32_t short_hash(const void *p, size_t n)
{
    uint32_t h = (uint32_t)strings_hash(p, n);

    return h ? h : 1;
}

static struct strings_slot *find(const struct strings *s, uint32_t hash, const void *p, size_t n)
{
    for (uint32_t i = hash & s->mask;; i = (i + 1) & s->mask) {
        struct strings_slot *t = &s->slot[i];

        if (t->hash == 0 || (t->hash == hash && t->n == n && memcmp(s->pool.at + t->at, p, n) == 0))
            return t;
    }
}

static void grow(struct strings *s)
{
    struct strings_slot *old = s->slot;
    uint32_t n = s->slot ? s->mask + 1 : 0;

    s->mask = n ? 2 * n - 1 : 255;
    s->slot = mem_take((size_t)(s->mask + 1) * sizeof *s->slot);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].hash) {
            uint32_t k = old[i].hash & s->mask;

            while (s->slot[k].hash)
                k = (k + 1) & s->mask;
            s->slot[k] = old[i];
        }
    mem_give(old);
}

struct strings_slot *strings_add(struct strings *s, const void *p, size_t n, uint32_t value)
{
    uint32_t hash = short_hash(p, n);
    struct strings_slot *t;

    if (!s->slot || s->count * 2 > s->mask)
        grow(s);
    t = find(s, hash, p, n);
    if (t->hash == 0) {
        BUG_IF(s->pool.n + n > UINT32_MAX);
        *t = (struct strings_slot){ hash, (uint32_t)s->pool.n, (uint32_t)n, value };
        buffer_add(&s->pool, p, n);
        s->count++;
        s->longest = (uint32_t)n > s->longest ? (uint32_t)n : s->longest;
    }
    return t;
}

int64_t strings_find(const struct strings *s, const void *p, size_t n)
{
    const struct strings_slot *t;
    uint32_t hash;

    if (!s->slot || n > s->longest)
        return -1;
    hash = short_hash(p, n);
    if (s->filter) {
        uint32_t bit = hash >> (32 - s->filter_bits);

        if (!(s->filter[bit >> 6] >> (bit & 63) & 1))
            return -1;
    }
    t = find(s, hash, p, n);
    return t->hash ? (int64_t)t->value : -1;
}

void strings_make_filter(struct strings *s)
{
    s->filter_bits = 6;
    while (s->filter_bits < 24 && (uint32_t)1 << s->filter_bits < 16 * s->count)
        s->filter_bits++;
    s->filter = mem_take(((size_t)1 << s->filter_bits) / 8);
    for (uint32_t i = 0; s->slot && i <= s->mask; i++) {
        uint32_t bit = s->slot[i].hash >> (32 - s->filter_bits);

        if (s->slot[i].hash)
            s->filter[bit >> 6] |= (uint64_t)1 << (bit & 63);
    }
}

void strings_free(struct strings *s)
{
    mem_give(s->slot);
    mem_give(s->filter);
    buffer_free(&s->pool);
}
