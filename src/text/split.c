#include "text/split.h"

#include <string.h>

#include "text/unicode.h"

/* ---- the byte-level alphabet ---- */

/* Bytes that print stand for themselves; the other 68, in ascending order, are U+0100 and up. */
static int prints(int byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

void split_byte_character(unsigned char byte, char to[2], int *n)
{
    uint32_t c = byte;

    if (!prints(byte))
        c = 0x100u + (byte <= 0x20 ? byte : byte <= 0xa0 ? byte - 0x7fu + 0x21u : 67u);
    *n = unicode_put(c, to);
}

int split_character_byte(uint32_t c)
{
    if (c < 0x100)
        return prints((int)c) ? (int)c : -1;
    if (c > 0x143)
        return -1;
    c -= 0x100;
    return (int)(c <= 0x20 ? c : c < 67 ? c - 0x21 + 0x7f : 0xad);
}

/* ---- stages ---- */

struct run {
    const struct splitter *s;
    struct split_scratch *w;
    int begin, first;
    split_fn *fn;
    void *to;
    struct err *e;
};

static enum status run_stage(const struct run *r, int i, const char *text, size_t n);

/* The pieces of one text at one stage, while they are put together. */
struct cutter {
    const struct run *r;
    int next; /* the stage that gets them */
    const char *text;
    enum behaviour behaviour;
    size_t from, to; /* held back: may still grow */
    int held, was_match;
};

static enum status give(const struct cutter *c, size_t from, size_t to)
{
    return from < to ? run_stage(c->r, c->next, c->text + from, to - from) : OK;
}

/* The next span of the text, a match or a gap; spans have no holes between them. */
static enum status cutter_add(struct cutter *c, size_t from, size_t to, int match)
{
    enum status st = OK;
    int grows = 0;

    if (c->behaviour == CUT_ISOLATED || (c->behaviour == CUT_REMOVED && !match))
        return give(c, from, to);
    if (c->behaviour == CUT_REMOVED)
        return OK;
    if (c->behaviour == CUT_CONTIGUOUS)
        grows = match == c->was_match;
    else if (c->behaviour == CUT_PREVIOUS)
        grows = match && !c->was_match;
    else
        grows = !match && c->was_match; /* CUT_NEXT: a match waits for what it is merged with */
    if (c->held && grows) {
        c->to = to;
    } else {
        if (c->held)
            st = give(c, c->from, c->to);
        c->from = from;
        c->to = to;
        c->held = 1;
    }
    c->was_match = match;
    return st;
}

static enum status run_cut(const struct run *r, int i, const char *text, size_t n)
{
    const struct stage *g = &r->s->stage[i];
    struct pattern_search f = { .p = &g->pattern, .s = r->w->pattern, .text = text, .n = n };
    struct cutter c = { .r = r, .next = i + 1, .text = text, .behaviour = g->behaviour };
    size_t done = 0;
    int found;
    enum status st = OK;

    while (st == OK && (found = pattern_next(&f, r->e)) != 0) {
        if (found < 0)
            return E_RESOURCE;
        if (f.from > done)
            st = cutter_add(&c, done, f.from, g->invert);
        if (st == OK)
            st = cutter_add(&c, f.from, f.to, !g->invert);
        done = f.to;
    }
    if (st == OK && done < n)
        st = cutter_add(&c, done, n, g->invert);
    if (st == OK && c.held)
        st = give(&c, c.from, c.to);
    return st;
}

static enum status run_prefix(const struct run *r, int i, const char *text, size_t n)
{
    struct buffer *b = &r->w->rewritten[i];

    if (text[0] == ' ' || !r->begin)
        return run_stage(r, i + 1, text, n);
    b->n = 0;
    buffer_add(b, " ", 1);
    buffer_add(b, text, n);
    return run_stage(r, i + 1, b->at, b->n);
}

static enum status run_spaces(const struct run *r, int i, const char *text, size_t n)
{
    const struct stage *g = &r->s->stage[i];
    struct buffer *b = &r->w->rewritten[i];
    size_t k = strlen(g->character), done = 0;
    int starts = text[0] == ' ' || (n >= k && memcmp(text, g->character, k) == 0);

    b->n = 0;
    if (!starts && r->begin &&
        (g->scheme == SCHEME_ALWAYS || (g->scheme == SCHEME_FIRST && r->first)))
        buffer_add(b, g->character, k);
    while (done < n) {
        const char *p = memchr(text + done, ' ', n - done);
        size_t to = p ? (size_t)(p - text) : n;

        buffer_add(b, text + done, to - done);
        if (p)
            buffer_add(b, g->character, k);
        done = to + (p != NULL);
    }
    return run_stage(r, i + 1, b->at, b->n);
}

static enum status run_bytes(const struct run *r, int i, const char *text, size_t n)
{
    struct buffer *b = &r->w->rewritten[i];

    b->n = 0;
    for (size_t k = 0; k < n; k++) {
        char to[2];
        int m;

        split_byte_character((unsigned char)text[k], to, &m);
        buffer_add(b, to, (size_t)m);
    }
    return run_stage(r, i + 1, b->at, b->n);
}

static enum status run_stage(const struct run *r, int i, const char *text, size_t n)
{
    static enum status (*const kinds[])(const struct run *, int, const char *, size_t) = {
        [STAGE_CUT] = run_cut,
        [STAGE_PREFIX] = run_prefix,
        [STAGE_SPACES] = run_spaces,
        [STAGE_BYTES] = run_bytes,
    };

    return i < r->s->n ? kinds[r->s->stage[i].kind](r, i, text, n) : r->fn(r->to, text, n, r->e);
}

enum status split_run(const struct splitter *s, struct split_scratch *w, const char *text, size_t n,
                      int begin, int first, split_fn *fn, void *to, struct err *e)
{
    struct run r = { s, w, begin, first, fn, to, e };

    return n ? run_stage(&r, 0, text, n) : OK;
}

/* ---- cutting a long text ---- */

/* Does the stage neither look across the space nor care for it? */
static int is_local(const struct stage *g, const struct buffer *space)
{
    if (g->behaviour == CUT_PREVIOUS)
        return 0;
    if (g->pattern.kind == PATTERN_STRING)
        return !memchr(g->pattern.text, space->at[0], g->pattern.n);
    return g->pattern.kind == PATTERN_CLASS || g->pattern.kind == PATTERN_WORDS;
}

int split_cuttable(const struct splitter *s, struct buffer *space, int *begins)
{
    *begins = 0;
    for (int i = 0; i < s->n; i++) {
        const struct stage *g = &s->stage[i];
        int is_space = space->n == 1 && space->at[0] == ' ';

        if (g->kind == STAGE_BYTES || (i > 0 && g->kind != STAGE_CUT))
            return 0;
        if (g->kind == STAGE_SPACES && is_space) {
            space->n = 0;
            buffer_text(space, g->character);
        } else if (g->kind == STAGE_CUT && g->pattern.kind == PATTERN_STRING &&
                   g->behaviour == CUT_NEXT && !g->invert && g->pattern.n == space->n &&
                   memcmp(g->pattern.text, space->at, space->n) == 0) {
            *begins = 1;
        } else if (g->kind == STAGE_CUT && pattern_begins_at_space(&g->pattern) && is_space &&
                   g->behaviour == CUT_ISOLATED) {
            *begins = 1;
        } else if (g->kind == STAGE_CUT && !is_local(g, space)) {
            return 0;
        }
    }
    return 1;
}
