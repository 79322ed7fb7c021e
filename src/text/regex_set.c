#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#include "text/regex.h"
#include "text/unicode.h"

void regex_put_point(struct buffer *out, uint32_t c)
{
    char text[16];

    snprintf(text, sizeof text, "\\x{%x}", (unsigned)c);
    buffer_text(out, text);
}

static void put_range(struct buffer *out, uint32_t first, uint32_t last)
{
    regex_put_point(out, first);
    if (last > first) {
        buffer_text(out, "-");
        regex_put_point(out, last);
    }
}

static void put_complement(struct buffer *out, const struct unicode_range *r, int n)
{
    uint32_t from = 0;

    for (int i = 0; i <= n; i++) {
        uint32_t to = i < n ? r[i].first : UNICODE_POINTS;

        if (from < 0xd800 && to > 0xd800) { /* no surrogates in a pattern */
            put_range(out, from, 0xd7ff);
            from = 0xe000;
        }
        if (from < to && !(from >= 0xd800 && from < 0xe000))
            put_range(out, from, to - 1);
        if (i < n)
            from = r[i].last + 1;
    }
}

/* All characters, one after the other. */
static char *all_points(size_t *bytes)
{
    char *p = mem_take(4 * UNICODE_POINTS);

    *bytes = 0;
    for (uint32_t c = 0; c < UNICODE_POINTS; c++)
        if (c < 0xd800 || c >= 0xe000)
            *bytes += (size_t)unicode_put(c, p + *bytes);
    return p;
}

/* of[c]: PCRE2 has c in the category. Returns 0 if it does not know it. */
static int pcre2_knows(const char *name, uint8_t *of)
{
    char pattern[32];
    int why;
    size_t at = 0, n, where;
    char *text;
    pcre2_code *code;
    pcre2_match_data *m;

    snprintf(pattern, sizeof pattern, "\\p{%s}+", name);
    code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &why,
                         &where, NULL);
    if (!code)
        return 0;
    text = all_points(&n);
    m = pcre2_match_data_create(1, NULL);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    while (m && pcre2_match(code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, m, NULL) > 0) {
        PCRE2_SIZE *v = pcre2_get_ovector_pointer(m);
        uint32_t c;

        for (at = v[0]; at < v[1];) {
            at += (size_t)unicode_at(text + at, &c);
            of[c] = 1;
        }
    }
    pcre2_match_data_free(m);
    pcre2_code_free(code);
    mem_give(text);
    return m != NULL;
}

/* \p{X} and what PCRE2's Unicode lacks, or nothing if it has too much. */
static int put_with_gaps(struct buffer *out, const char *name, const struct unicode_range *r, int n)
{
    uint8_t *theirs = mem_take(UNICODE_POINTS);
    size_t begin = out->n;
    int fine = pcre2_knows(name, theirs), i = 0;

    if (fine) {
        buffer_text(out, "\\p{");
        buffer_text(out, name);
        buffer_text(out, "}");
    }
    for (uint32_t c = 0; fine && c < UNICODE_POINTS; c++) {
        uint32_t last = c;

        while (i < n && r[i].last < c)
            i++;
        if (i == n || r[i].first > c) {
            fine = !theirs[c];
            continue;
        }
        if (theirs[c])
            continue;
        while (last < r[i].last && !theirs[last + 1])
            last++;
        put_range(out, c, last);
        c = last;
    }
    if (!fine)
        out->n = begin;
    mem_give(theirs);
    return fine;
}

static int put_property(struct buffer *out, const char *name, int negated)
{
    int n;
    struct unicode_range *r = unicode_property(name, &n);
    int few = n <= 64;

    if (!r)
        return 0;
    if (negated)
        put_complement(out, r, n);
    else if (few || name[0] == 'w' || !put_with_gaps(out, name[0] == 'd' ? "Nd" : name, r, n))
        for (int i = 0; i < n; i++)
            if (r[i].first < 0xd800 || r[i].first >= 0xe000)
                put_range(out, r[i].first, r[i].last);
    mem_give(r);
    return 1;
}

int regex_put_property(struct regex_sets *s, struct buffer *out, const char *name, int negated)
{
    struct regex_set *t = &s->set[s->n < COUNT_OF(s->set) ? s->n : COUNT_OF(s->set) - 1];
    int i = 0;

    while (i < s->n && (strcmp(s->set[i].name, name) != 0 || s->set[i].negated != negated))
        i++;
    if (i < s->n) {
        t = &s->set[i];
    } else {
        t->text.n = 0;
        if (!put_property(&t->text, name, negated))
            return 0;
        snprintf(t->name, sizeof t->name, "%s", name);
        t->negated = negated;
        s->n += s->n < COUNT_OF(s->set);
    }
    buffer_add(out, t->text.at, t->text.n);
    return 1;
}

void regex_sets_free(struct regex_sets *s)
{
    for (int i = 0; i < COUNT_OF(s->set); i++)
        buffer_free(&s->set[i].text);
}
