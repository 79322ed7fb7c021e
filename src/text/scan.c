#include "text/scan.h"

#include <string.h>

#include "base/arena.h"
#include "text/unicode.h"

enum { CHUNK = 1 << 14 };

enum scan_kind scan_kind_of(const char *name)
{
    static const char *const names[] = { "", "gpt2", "llama3", "qwen2" };

    for (int i = 1; name && i < COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0)
            return (enum scan_kind)i;
    return SCAN_NONE;
}

void scan_open(struct scan *s, enum scan_kind kind, const uint8_t *classes)
{
    *s = (struct scan){ .kind = kind, .classes = classes, .classify = scan_classifier() };
}

void scan_free(struct scan *s)
{
    mem_give(s->m);
    mem_give(s->start);
}

static void make_room(struct scan *s, size_t n)
{
    size_t words = n / 64 + 2;

    if (words <= s->room)
        return;
    mem_give(s->m);
    mem_give(s->start);
    s->m = mem_take(words * sizeof *s->m);
    s->start = mem_take(words * sizeof *s->start);
    s->room = words;
}

/* ---- bits ---- */

static inline int is_start(const struct scan *s, size_t i)
{
    return s->start[i >> 6] >> (i & 63) & 1;
}
static inline void set_start(struct scan *s, size_t i)
{
    s->start[i >> 6] |= (uint64_t)1 << (i & 63);
}
static inline void clear_start(struct scan *s, size_t i)
{
    s->start[i >> 6] &= ~((uint64_t)1 << (i & 63));
}
#define HAS(s, mask, i) ((s)->m[(i) >> 6].mask >> ((i)&63) & 1)

/* A bit of the word before and after moves in. */
static inline uint64_t up(uint64_t x, uint64_t before)
{
    return x << 1 | before >> 63;
}
static inline uint64_t down(uint64_t x, uint64_t after)
{
    return x >> 1 | after << 63;
}
static inline uint64_t others(const struct scan_masks *m)
{
    return ~(m->letter | m->number | m->space);
}

/* ---- masks ---- */

static inline void add_class(struct scan_masks *m, uint8_t class, uint64_t bytes)
{
    m->letter |= class & UNICODE_LETTER ? bytes : 0;
    m->number |= class & UNICODE_NUMBER ? bytes : 0;
    m->space |= class & UNICODE_SPACE ? bytes : 0;
}

/* Characters beyond ASCII: all their bytes get the class. Returns whether one is a space. */
static int classify_high(struct scan *s, const char *text, size_t n)
{
    int wide_space = 0;

    for (size_t w = 0; w * 64 < n; w++)
        for (uint64_t high = s->m[w].high; high;) {
            int i = __builtin_ctzll(high), k;
            uint64_t bytes;
            uint32_t c;
            uint8_t class;

            k = unicode_at(text + w * 64 + i, &c);
            class = s->classes[c];
            bytes = ((uint64_t)1 << k) - 1;
            add_class(&s->m[w], class, bytes << i);
            wide_space |= class & UNICODE_SPACE;
            if (i + k > 64) { /* its last bytes are in the next word */
                add_class(&s->m[w + 1], class, bytes >> (64 - i));
                s->m[w + 1].high &= ~(bytes >> (64 - i));
            }
            high &= ~(bytes << i);
        }
    return wide_space;
}

/* Behind the end everything is space, so that a last run of spaces is not cut. */
static int classify(struct scan *s, const char *text, size_t n)
{
    size_t blocks = n / 64, rest = n % 64;
    unsigned char last[64] = { 0 };
    uint64_t beyond = ~(uint64_t)0 << rest;

    s->classify((const unsigned char *)text, blocks, s->m);
    memcpy(last, text + 64 * blocks, rest);
    s->classify(last, 1, s->m + blocks);
    s->m[blocks].space |= beyond;
    s->m[blocks + 1] = (struct scan_masks){ .space = ~(uint64_t)0 };
    return classify_high(s, text, n);
}

/* ---- starts ---- */

static void starts_gpt2(struct scan *s, size_t words)
{
    struct scan_masks before = { .space = ~(uint64_t)0 };
    uint64_t attached = 0;

    for (size_t w = 0; w < words; w++) {
        const struct scan_masks *m = &s->m[w];
        uint64_t after = m[1].space, next_space = down(m->space, after);
        uint64_t attach = m->blank & ~next_space, other = others(m);
        uint64_t same = (m->letter & up(m->letter, before.letter)) |
                        (m->number & up(m->number, before.number)) |
                        (other & up(other, others(&before)));

        s->start[w] = (~m->space & ~same & ~up(attach, attached)) |
                      (m->space & ~(up(m->space, before.space) & next_space));
        before = *m;
        attached = attach;
    }
}

static void starts_llama3(struct scan *s, size_t words)
{
    struct scan_masks before = { .space = ~(uint64_t)0 };
    uint64_t before_l = 0, before_p = 0, before_one = 0;

    for (size_t w = 0; w < words; w++) {
        const struct scan_masks *m = &s->m[w];
        uint64_t next_letter = down(m->letter, m[1].letter);
        uint64_t next_space = down(m->space, m[1].space);
        uint64_t other = others(m), next_other = down(other, others(m + 1));
        uint64_t to_letter = m->space & ~m->newline & next_letter; /* a space joins letters */
        uint64_t to_other = m->blank & next_other;
        uint64_t begin = other & ~up(other, others(&before)) & ~up(to_other, before_p);
        uint64_t one = begin & ~m->high & next_letter; /* so does a single other character */

        s->start[w] = begin |
                      (m->letter & ~up(m->letter, before.letter) & ~up(to_letter, before_l) &
                       ~up(one, before_one)) |
                      (m->space & ~(up(m->space, before.space) & next_space));
        before = *m;
        before_l = to_letter;
        before_p = to_other;
        before_one = one;
    }
}

/* A wide character that begins a piece of others joins letters if it is alone. */
static void join_wide(struct scan *s, const char *text, size_t n, size_t words)
{
    for (size_t w = 0; w < words; w++)
        for (uint64_t x = s->start[w] & s->m[w].high & others(&s->m[w]); x; x &= x - 1) {
            size_t i = w * 64 + (size_t)__builtin_ctzll(x);
            size_t k = i + (size_t)unicode_length(text[i]);

            if (k < n && HAS(s, letter, k))
                clear_start(s, k);
        }
}

/* Runs of digits are cut after `most` characters. */
static void cut_numbers(struct scan *s, const char *text, size_t n, size_t words, int most)
{
    uint64_t before = 0;

    for (size_t w = 0; w < words; before = s->m[w++].number)
        for (uint64_t x = s->m[w].number & ~up(s->m[w].number, before); x; x &= x - 1) {
            size_t i = w * 64 + (size_t)__builtin_ctzll(x);

            for (int k = 0; i < n && HAS(s, number, i); k++) {
                if (k % most == 0)
                    set_start(s, i);
                i += (size_t)unicode_length(text[i]);
            }
        }
}

/* The last space of a run of several, if it is followed by no space, begins a piece: at its first
 * byte. */
static void move_wide_spaces(struct scan *s, const char *text, size_t n, size_t words)
{
    for (size_t w = 0; w < words; w++)
        for (uint64_t x = s->start[w] & s->m[w].space; x; x &= x - 1) {
            size_t i = w * 64 + (size_t)__builtin_ctzll(x), k = i;

            if (i >= n || (text[i] & 0xc0) != 0x80)
                continue;
            while ((text[k] & 0xc0) == 0x80)
                k--;
            clear_start(s, i);
            set_start(s, k);
        }
}

/* The first of the spaces that end before `at`; `at`: there is none. */
static size_t spaces_begin(const struct scan *s, size_t at)
{
    while (at > 0) {
        size_t w = (at - 1) >> 6;
        uint64_t no = ~s->m[w].space << (63 - ((at - 1) & 63));

        if (no)
            return at - (size_t)__builtin_clzll(no);
        at = w << 6;
    }
    return 0;
}

/* Where the spaces from `at` on end. */
static size_t spaces_end(const struct scan *s, size_t at, size_t n)
{
    while (at < n) {
        uint64_t no = ~s->m[at >> 6].space >> (at & 63);

        if (no) {
            at += (size_t)__builtin_ctzll(no);
            return at < n ? at : n;
        }
        at = (at | 63) + 1;
    }
    return n;
}

/* The last newline in front of `at`; there is one. */
static size_t last_newline(const struct scan *s, size_t at)
{
    for (;;) {
        size_t w = (at - 1) >> 6;
        uint64_t yes = s->m[w].newline << (63 - ((at - 1) & 63));

        if (yes)
            return at - 1 - (size_t)__builtin_clzll(yes);
        at = w << 6;
    }
}

static void clear_starts(struct scan *s, size_t from, size_t to)
{
    while (from < to) {
        size_t end = (from | 63) + 1 < to ? (from | 63) + 1 : to;

        s->start[from >> 6] &= ~(~(uint64_t)0 >> (64 - (end - from)) << (from & 63));
        from = end;
    }
}

/* A run of spaces with newlines: those right behind other characters belong to them; then up to the
 * last newline; then as without. */
static size_t cut_lines(struct scan *s, size_t n, size_t first_newline)
{
    size_t b = spaces_begin(s, first_newline), e = spaces_end(s, first_newline, n);
    size_t last = last_newline(s, e), at = b;

    clear_starts(s, b, last + 1);
    if (b > 0 && !HAS(s, letter, b - 1) && !HAS(s, number, b - 1))
        while (at < e && HAS(s, newline, at))
            at++;
    if (at < e)
        set_start(s, at);
    if (at <= last && last + 1 < e)
        set_start(s, last + 1);
    return e;
}

static void cut_all_lines(struct scan *s, size_t n, size_t words)
{
    size_t done = 0;

    for (size_t w = 0; w < words; w++)
        for (uint64_t x = s->m[w].newline; x; x &= x - 1) {
            size_t i = w * 64 + (size_t)__builtin_ctzll(x);

            if (i >= done)
                done = cut_lines(s, n, i);
        }
}

/* 's 't 'm 'd 're 've 'll at the begin of a piece; any: in any case, where U+017F is an s. */
static size_t contraction(const char *p, size_t n, int any)
{
    int a = n > 1 ? (unsigned char)p[1] : 0, b = n > 2 ? (unsigned char)p[2] : 0;

    if (any && a == 0xc5 && b == 0xbf)
        return 3;
    if (any && a < 0x80 && b < 0x80) {
        a |= 0x20;
        b |= 0x20;
    } else if (any && a < 0x80) {
        a |= 0x20;
    }
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

static void cut_contractions(struct scan *s, const char *text, size_t n, size_t words, int any)
{
    for (size_t w = 0; w < words; w++)
        for (uint64_t x = s->m[w].quote; x; x &= x - 1) {
            size_t i = w * 64 + (size_t)__builtin_ctzll(x), k;

            if (!is_start(s, i) || (k = contraction(text + i, n - i, any)) == 0)
                continue;
            for (size_t j = i + 1; j < i + k; j++)
                clear_start(s, j);
            if (i + k < n)
                set_start(s, i + k);
        }
}

/* A letter ends a piece where no letter follows: the last such place, or 0. */
static size_t border(const struct scan *s, size_t n)
{
    for (size_t w = n / 64 + 1; w-- > 0;) {
        uint64_t before = w ? s->m[w - 1].letter : 0;
        uint64_t x = ~s->m[w].letter & up(s->m[w].letter, before);

        if (n - w * 64 < 64)
            x &= ((uint64_t)1 << (n - w * 64)) - 1;
        if (x)
            return w * 64 + 63 - (size_t)__builtin_clzll(x);
    }
    return 0;
}

/* Classifies the begin of the text and returns how much of it. */
static size_t classify_begin(struct scan *s, const char *text, size_t n, int *wide)
{
    size_t take;

    for (size_t chunk = CHUNK; n > chunk; chunk *= 4) {
        size_t part = chunk;

        while ((text[part] & 0xc0) == 0x80)
            part--;
        make_room(s, part);
        *wide = classify(s, text, part);
        if ((take = border(s, part)) > 0)
            return take;
    }
    make_room(s, n);
    *wide = classify(s, text, n);
    return n;
}

size_t scan_pieces(struct scan *s, const char *text, size_t n)
{
    int wide;
    size_t take = classify_begin(s, text, n, &wide), words = take / 64 + 1;

    if (s->kind == SCAN_GPT2)
        starts_gpt2(s, words);
    else
        starts_llama3(s, words);
    if (wide)
        move_wide_spaces(s, text, take, words);
    if (s->kind != SCAN_GPT2) {
        join_wide(s, text, take, words);
        cut_numbers(s, text, take, words, s->kind == SCAN_LLAMA3 ? 3 : 1);
        cut_all_lines(s, take, words);
    }
    cut_contractions(s, text, take, words, s->kind != SCAN_GPT2);
    set_start(s, 0);
    s->start[take >> 6] &= ((uint64_t)1 << (take & 63)) - 1;
    set_start(s, take); /* the end of the last */
    return take;
}
