#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "text/unicode_categories.inc"
#include "text/unicode_sets.inc"

static const struct set {
    const char *name;
    const uint32_t *ranges; /* [2 n] */
    int n;
} scripts[] = {
    { "Han", script_han, COUNT_OF(script_han) / 2 },
    { "Hiragana", script_hiragana, COUNT_OF(script_hiragana) / 2 },
    { "Katakana", script_katakana, COUNT_OF(script_katakana) / 2 },
    { "Hangul", script_hangul, COUNT_OF(script_hangul) / 2 },
    { "Latin", script_latin, COUNT_OF(script_latin) / 2 },
    { "Cyrillic", script_cyrillic, COUNT_OF(script_cyrillic) / 2 },
    { "Greek", script_greek, COUNT_OF(script_greek) / 2 },
    { "Arabic", script_arabic, COUNT_OF(script_arabic) / 2 },
    { "Hebrew", script_hebrew, COUNT_OF(script_hebrew) / 2 },
    { "Thai", script_thai, COUNT_OF(script_thai) / 2 },
};

/* Besides spaces of category Z. */
static const uint32_t space_more[] = { 9, 13, 0x85, 0x85 };

/* A property is a union of categories ("L": all that begin with L) and of more ranges. */
static const struct property {
    const char *name;
    const char *categories;
    const uint32_t *more;
    int nmore; /* ranges */
} properties[] = {
    { "s", "Z", space_more, 2 },
    { "d", "Nd", NULL, 0 },
    { "w", "L M Nd Nl Pc", regex_word_more, COUNT_OF(regex_word_more) / 2 },
    { "w in class", "L M Nd Nl Pc", class_word_more, COUNT_OF(class_word_more) / 2 },
    { "word", "L M Nd Nl Pc", rust_word_more, COUNT_OF(rust_word_more) / 2 },
    { "digit", "N", rust_numeric_more, COUNT_OF(rust_numeric_more) / 2 },
    { "punctuation", "", punctuation, COUNT_OF(punctuation) / 2 },
    { "inert", "", inert, COUNT_OF(inert) / 2 },
};

/* Is category `name` one of the words of list? A word of one letter is all that begin with it. */
static int in_list(const char *name, const char *list)
{
    for (const char *p = list; *p; p++) {
        if (*p == ' ')
            continue;
        if (*p == name[0] && (p[1] == 0 || p[1] == ' ' || p[1] == name[1]))
            return 1;
        while (p[1] && p[1] != ' ')
            p++;
    }
    return 0;
}

/* ---- ranges ---- */

struct ranges {
    struct unicode_range *r;
    int n, room;
};

static void add_range(struct ranges *to, uint32_t first, uint32_t last)
{
    if (to->n == to->room) {
        int room = 2 * to->room + 64;

        to->r = mem_grow(to->r, (size_t)to->room * sizeof *to->r, (size_t)room * sizeof *to->r);
        to->room = room;
    }
    to->r[to->n++] = (struct unicode_range){ first, last };
}

static void add_ranges(struct ranges *to, const uint32_t *r, int n)
{
    for (int i = 0; i < n; i++)
        add_range(to, r[2 * i], r[2 * i + 1]);
}

static void add_categories(struct ranges *to, const char *list)
{
    for (int i = 0; i < COUNT_OF(category_starts); i++)
        if (in_list(category_names[category_starts[i] & 31], list))
            add_range(
                to, category_starts[i] >> 5,
                (i + 1 < COUNT_OF(category_starts) ? category_starts[i + 1] >> 5 : UNICODE_POINTS) -
                    1);
}

static int add_property(struct ranges *to, const char *name)
{
    for (int i = 0; i < COUNT_OF(properties); i++)
        if (strcmp(properties[i].name, name) == 0) {
            add_categories(to, properties[i].categories);
            add_ranges(to, properties[i].more, properties[i].nmore);
            return 1;
        }
    for (int i = 0; i < COUNT_OF(scripts); i++)
        if (strcmp(scripts[i].name, name) == 0) {
            add_ranges(to, scripts[i].ranges, scripts[i].n);
            return 1;
        }
    for (int i = 0; i < COUNT_OF(category_names); i++)
        if (strcmp(category_names[i], name) == 0 || (category_names[i][0] == name[0] && !name[1])) {
            add_categories(to, name);
            return 1;
        }
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct unicode_range *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

struct unicode_range *unicode_property(const char *name, int *n)
{
    struct ranges all = { 0 };

    *n = 0;
    if (!*name || !add_property(&all, name))
        return NULL;
    add_range(&all, UNICODE_POINTS, UNICODE_POINTS); /* so that there is one */
    qsort(all.r, (size_t)all.n, sizeof *all.r, by_first);
    for (int i = 0; i < all.n - 1; i++)
        if (*n && all.r[*n - 1].last + 1 == all.r[i].first)
            all.r[*n - 1].last = all.r[i].last;
        else
            all.r[(*n)++] = all.r[i];
    return all.r;
}

void unicode_classes(uint8_t *of)
{
    static const struct {
        const char *name;
        uint8_t bit;
    } rows[] = {
        { "L", UNICODE_LETTER },    { "N", UNICODE_NUMBER },
        { "s", UNICODE_SPACE },     { "word", UNICODE_WORD },
        { "digit", UNICODE_DIGIT }, { "punctuation", UNICODE_PUNCTUATION },
        { "inert", UNICODE_INERT },
    };

    memset(of, 0, UNICODE_POINTS);
    for (int i = 0; i < COUNT_OF(rows); i++) {
        int n;
        struct unicode_range *r = unicode_property(rows[i].name, &n);

        for (int k = 0; k < n; k++)
            for (uint32_t c = r[k].first; c <= r[k].last; c++)
                of[c] |= rows[i].bit;
        mem_give(r);
    }
}

int unicode_lower(uint32_t c, uint32_t to[2])
{
    int lo = 0, hi = COUNT_OF(lower) / 4;

    to[0] = c;
    if (c == 0x130) { /* the only one with two */
        to[0] = 'i';
        to[1] = 0x307;
        return 2;
    }
    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if ((int32_t)c > lower[4 * mid + 1])
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < COUNT_OF(lower) / 4 && (int32_t)c >= lower[4 * lo] &&
        ((int32_t)c - lower[4 * lo]) % lower[4 * lo + 3] == 0)
        to[0] = (uint32_t)((int32_t)c + lower[4 * lo + 2]);
    return 1;
}

int unicode_put(uint32_t c, char *p)
{
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (char)(0xc0 | c >> 6);
        p[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        p[0] = (char)(0xe0 | c >> 12);
        p[1] = (char)(0x80 | (c >> 6 & 63));
        p[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    p[0] = (char)(0xf0 | c >> 18);
    p[1] = (char)(0x80 | (c >> 12 & 63));
    p[2] = (char)(0x80 | (c >> 6 & 63));
    p[3] = (char)(0x80 | (c & 63));
    return 4;
}
