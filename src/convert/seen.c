#include "convert/seen.h"

#include <string.h>

#include "base/arena.h"

/* Parts of their own, by the first bits, so that only one is held twice while it grows. */
enum { PARTS = 256, FIRST_ROOM = 16 };

struct hash {
    uint64_t at[2]; /* both 0: empty */
};
struct part {
    struct hash *slot; /* [room] */
    uint64_t n, room;
};
struct seen {
    struct part part[PARTS];
};

struct seen *seen_open(void)
{
    return mem_take(sizeof(struct seen));
}

void seen_close(struct seen *s)
{
    for (int i = 0; s && i < PARTS; i++)
        mem_give(s->part[i].slot);
    mem_give(s);
}

/* Where it is, or would be; at[0]'s low bits have chosen the part. */
static struct hash *find(const struct part *p, const struct hash *h)
{
    uint64_t i = (uint64_t)(((unsigned __int128)h->at[1] * p->room) >> 64);

    while ((p->slot[i].at[0] | p->slot[i].at[1]) && memcmp(&p->slot[i], h, sizeof *h) != 0)
        i = i + 1 == p->room ? 0 : i + 1;
    return &p->slot[i];
}

/* 8 to 9 tenths of the slots are taken, but for small parts. */
static void grow(struct part *p)
{
    struct part old = *p;

    p->room = old.room ? old.room + old.room / 8 + 2 : FIRST_ROOM;
    p->slot = mem_take(p->room * sizeof *p->slot);
    for (uint64_t i = 0; i < old.room; i++)
        if (old.slot[i].at[0] | old.slot[i].at[1])
            *find(p, &old.slot[i]) = old.slot[i];
    mem_give(old.slot);
}

int seen_add(struct seen *s, const uint64_t hash[2])
{
    struct hash h = { { hash[0], hash[1] }, }, *slot;
    struct part *p = &s->part[hash[0] % PARTS];

    if (!(h.at[0] | h.at[1]))
        h.at[1] = 1;
    if (10 * (p->n + 1) > 9 * p->room)
        grow(p);
    slot = find(p, &h);
    if (slot->at[0] | slot->at[1])
        return 0;
    *slot = h;
    p->n++;
    return 1;
}
