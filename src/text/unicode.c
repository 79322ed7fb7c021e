#include "text/unicode.h"

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

static void mark(uint8_t *of, const uint32_t *ranges, int n, uint8_t bit)
{
    for (int i = 0; i < n; i++)
        for (uint32_t c = ranges[2 * i]; c <= ranges[2 * i + 1]; c++)
            of[c] |= bit;
}

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

static void mark_categories(uint8_t *of, const char *list, uint8_t bit)
{
    for (int i = 0; i < COUNT_OF(category_starts); i++) {
        uint32_t from = category_starts[i] >> 5, to = UNICODE_POINTS;

        if (i + 1 < COUNT_OF(category_starts))
            to = category_starts[i + 1] >> 5;
        if (in_list(category_names[category_starts[i] & 31], list))
            for (uint32_t c = from; c < to; c++)
                of[c] |= bit;
    }
}

static int mark_property(uint8_t *of, const char *name, uint8_t bit)
{
    for (int i = 0; i < COUNT_OF(properties); i++)
        if (strcmp(properties[i].name, name) == 0) {
            mark_categories(of, properties[i].categories, bit);
            mark(of, properties[i].more, properties[i].nmore, bit);
            return 1;
        }
    for (int i = 0; i < COUNT_OF(scripts); i++)
        if (strcmp(scripts[i].name, name) == 0) {
            mark(of, scripts[i].ranges, scripts[i].n, bit);
            return 1;
        }
    for (int i = 0; i < COUNT_OF(category_names); i++)
        if (strcmp(category_names[i], name) == 0 || (category_names[i][0] == name[0] && !name[1])) {
            mark_categories(of, name, bit);
            return 1;
        }
    return 0;
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
    for (int i = 0; i < COUNT_OF(rows); i++)
        mark_property(of, rows[i].name, rows[i].bit);
}

struct unicode_range *unicode_property(const char *name, int *n)
{
    uint8_t *of = mem_take(UNICODE_POINTS);
    struct unicode_range *r = NULL;
    int known = *name && mark_property(of, name, 1);

    *n = 0;
    for (int count = 0; known && count < 2; count++) {
        if (count)
            r = mem_take((size_t)(*n + 1) * sizeof *r);
        *n = 0;
        for (uint32_t c = 0; c < UNICODE_POINTS; c++) {
            if (of[c] && (c == 0 || !of[c - 1])) {
                if (r)
                    r[*n].first = c;
                ++*n;
            }
            if (of[c] && r)
                r[*n - 1].last = c;
        }
    }
    mem_give(of);
    return r;
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
