#include "text/model.h"

#include <stdio.h>

#include "base/arena.h"
#include "text/split.h"

void model_free(struct model *m)
{
    strings_free(&m->names);
    strings_free(&m->raw);
    mem_give(m->text);
    mem_give(m->point_id);
    arena_close(&m->arena);
}

enum status model_add_name(struct model *m, const char *s, size_t n, uint32_t id, const char *where,
                           struct err *e)
{
    struct strings_slot *t;

    if (n == 0)
        return err_set(e, E_FILE, "%s: an empty token is not supported", where);
    if (id >= MODEL_IDS_MAX)
        return err_set(e, E_FILE, "%s: id %lld of `%.60s` is not supported: at most %d", where,
                       (long long)id, s, MODEL_IDS_MAX - 1);
    if (id >= m->size) {
        uint32_t room = id + 1 > 2 * m->size ? id + 1 : 2 * m->size;

        m->text = mem_grow(m->text, m->size * sizeof *m->text, room * sizeof *m->text);
        for (uint32_t i = m->size; i < room; i++)
            m->text[i].n = UINT32_MAX;
        m->size = room;
    }
    if (m->text[id].n != UINT32_MAX)
        return err_set(e, E_FILE, "%s: two tokens have the id %u; one is `%.60s`", where, id, s);
    t = strings_add(&m->names, s, n, id);
    if (t->value != id)
        return err_set(e, E_FILE, "%s: `%.60s` has two ids, %u and %u", where, s, t->value, id);
    m->text[id] = (struct model_text){ t->at, (uint32_t)n };
    return OK;
}

static void place_tables(struct model *m, size_t room)
{
    m->merge = arena_take_host(&m->arena, room * sizeof *m->merge);
    m->maybe = arena_take_host(&m->arena, ((size_t)1 << (32 - m->maybe_shift)) / 8);
    m->joins = arena_take_host(&m->arena, ((size_t)1 << MODEL_JOIN_BITS) / 8);
    m->pair = arena_take_host(&m->arena, 65536 * sizeof *m->pair);
}

void model_merges_begin(struct model *m, size_t n)
{
    struct err e = { "" };
    size_t room = 64;

    while (room < 2 * n)
        room *= 2;
    m->merge_mask = (uint32_t)(room - 1);
    m->maybe_shift = 32 - MODEL_MAYBE_BITS;
    while (8 * room < (size_t)1 << (32 - m->maybe_shift))
        m->maybe_shift++;
    arena_measure(&m->arena, "merges", NULL);
    place_tables(m, room);
    if (arena_open(&m->arena, &e) != OK)
        die(E_RESOURCE, "%s", e.text);
    place_tables(m, room);
    for (size_t i = 0; i < room; i++)
        m->merge[i].id = MERGE_NONE;
}

void model_merge_add(struct model *m, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    uint32_t h = model_pair_hash(left, right), i = h & m->merge_mask;
    uint32_t bit = h >> m->maybe_shift;

    m->maybe[bit >> 6] |= (uint64_t)1 << (bit & 63);
    while (m->merge[i].id != MERGE_NONE && (m->merge[i].left != left || m->merge[i].right != right))
        i = (i + 1) & m->merge_mask;
    m->nmerges += m->merge[i].id == MERGE_NONE;
    m->merge[i] = (struct merge){ left, right, rank, id };
    m->ranks = rank >= m->ranks ? rank + 1 : m->ranks;
}

/* ---- tables made of the vocabulary ---- */

int model_raw(const struct model *m, uint32_t id, struct buffer *to)
{
    const char *s = m->names.pool.at + m->text[id].at;
    size_t n = m->text[id].n;

    if (n == UINT32_MAX)
        return -1;
    to->n = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        int byte;
        char one;

        at += (size_t)unicode_at(s + at, &c);
        if ((byte = split_character_byte(c)) < 0)
            return -1;
        one = (char)byte;
        buffer_add(to, &one, 1);
    }
    return 0;
}

static void index_bytes(struct model *m)
{
    struct buffer b = { 0 };

    for (uint32_t id = 0; id < m->size; id++) {
        if (model_raw(m, id, &b))
            continue;
        strings_add(&m->raw, b.at, b.n, id);
        if (b.n == 1)
            m->byte_id[(unsigned char)b.at[0]] = (int32_t)id;
    }
    buffer_free(&b);
}

static void index_points(struct model *m)
{
    char name[8];

    m->point_id = mem_take(UNICODE_POINTS * sizeof *m->point_id);
    memset(m->point_id, -1, UNICODE_POINTS * sizeof *m->point_id);
    for (uint32_t id = 0; id < m->size; id++) {
        const struct model_text *t = &m->text[id];
        uint32_t c;

        if (t->n != UINT32_MAX && t->n == (uint32_t)unicode_at(m->names.pool.at + t->at, &c))
            m->point_id[c] = (int32_t)id;
    }
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        m->byte_id[i] = (int32_t)strings_find(&m->names, name, 6);
    }
}

static void join(struct model *m, const char *s, size_t n)
{
    uint32_t before = 0, c;

    for (size_t at = 0; at < n; before = c) {
        size_t k = m->bytes ? (c = (unsigned char)s[at], 1) : (size_t)unicode_at(s + at, &c);
        uint32_t h = model_join_hash(before, c);

        if (at)
            m->joins[h >> 6] |= (uint64_t)1 << (h & 63);
        at += k;
    }
}

void model_joins(struct model *m)
{
    for (size_t i = 0; i <= m->merge_mask; i++) {
        const struct model_text *t;
        struct buffer b = { 0 };

        if (m->merge[i].id == MERGE_NONE)
            continue;
        t = &m->text[m->merge[i].id];
        if (!m->bytes)
            join(m, m->names.pool.at + t->at, t->n);
        else if (model_raw(m, m->merge[i].id, &b) == 0)
            join(m, b.at, b.n);
        buffer_free(&b);
    }
}

static void index_pairs(struct model *m)
{
    for (int i = 0; i < 65536; i++) {
        const struct merge *g =
            model_merge(m, (uint32_t)m->byte_id[i >> 8], (uint32_t)m->byte_id[i & 255]);

        m->pair[i] =
            g ? (struct model_pair){ g->rank, g->id } : (struct model_pair){ UINT32_MAX, 0 };
    }
}

void model_index(struct model *m, int bytes)
{
    int all = 1;

    while (m->size && m->text[m->size - 1].n == UINT32_MAX)
        m->size--;
    memset(m->byte_id, -1, sizeof m->byte_id);
    if (bytes) {
        index_bytes(m);
        for (int i = 0; i < 256; i++)
            all &= m->byte_id[i] >= 0;
    }
    m->bytes = bytes && all;
    if (!m->bytes) {
        strings_free(&m->raw);
        m->raw = (struct strings){ 0 };
        index_points(m);
    } else {
        index_pairs(m);
    }
    if (m->ignore_merges)
        strings_make_filter(m->bytes ? &m->raw : &m->names);
    model_joins(m);
}
