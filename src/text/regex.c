#include "text/regex.h"

#include <stdio.h>

#include "text/unicode.h"

enum { DEPTH = 40, PATTERN_MAX = 1 << 15, REPEAT_MAX = 1000 };

struct reader {
    const char *s;
    size_t n, at;
    struct buffer *out;
    const char *where;
    struct err *e;
    struct regex_sets sets;
    int depth;
    int fold;  /* inside (?i:) */
    char last; /* there, the last literal letter, else 0 */
};

static enum status refuse(const struct reader *r, const char *what)
{
    return err_set(r->e, E_FILE, "%s: regular expression `%.*s`: %s at byte %zu is not supported",
                   r->where, (int)(r->n < 300 ? r->n : 300), r->s, what, r->at + 1);
}

static int next(const struct reader *r)
{
    return r->at < r->n ? (unsigned char)r->s[r->at] : -1;
}

static int looking_at(const struct reader *r, const char *text)
{
    size_t n = strlen(text);

    return r->n - r->at >= n && memcmp(r->s + r->at, text, n) == 0;
}

/* ---- characters ---- */

static int hex_value(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* \xHH, \x{H...}, \uHHHH: behind the letter. */
static enum status hex(struct reader *r, int digits, uint32_t *c)
{
    int braces = digits == 2 && next(r) == '{', n = 0;

    *c = 0;
    r->at += (size_t)braces;
    for (; n < (braces ? 6 : digits) && hex_value(next(r)) >= 0; n++, r->at++)
        *c = *c * 16 + (uint32_t)hex_value(next(r));
    if (n == 0 || (!braces && n < digits) || (braces && r->s[r->at < r->n ? r->at++ : 0] != '}'))
        return refuse(r, "a hexadecimal character of this form");
    if (*c >= UNICODE_POINTS || (*c >= 0xd800 && *c < 0xe000) ||
        (digits == 2 && !braces && *c >= 0x80))
        return refuse(r, "this character");
    return OK;
}

/* The letter behind a backslash that stands for one character. */
static int control(int letter)
{
    static const char names[] = "trnfvae", values[] = "\t\r\n\f\v\a\033";
    const char *p = letter > 0 ? strchr(names, letter) : NULL;

    return p ? values[p - names] : -1;
}

static int is_alnum(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One character, plain or escaped. */
static enum status character(struct reader *r, uint32_t *c)
{
    int letter = next(r);

    if (letter != '\\') {
        r->at += (size_t)unicode_at(r->s + r->at, c);
        return OK;
    }
    r->at++;
    letter = next(r);
    if (letter < 0)
        return refuse(r, "a backslash at the end");
    if (letter == 'x' || letter == 'u') {
        r->at++;
        return hex(r, letter == 'x' ? 2 : 4, c);
    }
    if (control(letter) >= 0 || (letter < 0x80 && !is_alnum(letter))) {
        *c = control(letter) >= 0 ? (uint32_t)control(letter) : (uint32_t)letter;
        r->at++;
        return OK;
    }
    return refuse(r, "this escape");
}

/* \s \S \d \D \w \W \p{..} \P{..} \p{^..}: *is. */
static enum status property(struct reader *r, char name[16], int *negated, int *is)
{
    int letter = r->at + 1 < r->n && next(r) == '\\' ? r->s[r->at + 1] : 0;
    size_t n = 0;

    *is = letter && strchr("sSdDwWpP", letter) != NULL;
    if (!*is)
        return OK;
    *negated = letter < 'a';
    if (r->fold && strchr("wWpP", letter))
        return refuse(r, "a property in (?i:)");
    r->at += 2;
    if (letter != 'p' && letter != 'P') {
        name[0] = (char)(letter | 0x20);
        name[1] = 0;
        return OK;
    }
    if (next(r) != '{')
        return refuse(r, "a property without braces");
    r->at++;
    if (next(r) == '^') {
        *negated ^= 1;
        r->at++;
    }
    while (is_alnum(next(r)) && n < 15)
        name[n++] = r->s[r->at++];
    name[n] = 0;
    if (next(r) != '}')
        return refuse(r, "this property");
    r->at++;
    return name[0] >= 'a' ? refuse(r, "this property") : OK;
}

static void put_literal(struct reader *r, uint32_t c)
{
    char text[4];

    if (is_alnum((int)c) || c >= 0x80)
        buffer_add(r->out, text, (size_t)unicode_put(c, text));
    else
        regex_put_point(r->out, c);
}

/* Oniguruma also folds one character to two or three: `ss` finds a sharp s. */
static enum status check_fold(struct reader *r, uint32_t c)
{
    static const char pairs[] = "ss ff fi fl st";
    char pair[3] = { r->last, (char)(c | 0x20), 0 };

    if (!r->fold)
        return OK;
    if (c >= 0x80)
        return refuse(r, "a character beyond ASCII in (?i:)");
    r->last = is_alnum((int)c) ? pair[1] : 0;
    return r->last && pair[0] && strstr(pairs, pair) ? refuse(r, "this pair of letters in (?i:)")
                                                     : OK;
}

/* ---- classes ---- */

static enum status class_item(struct reader *r, struct buffer *set)
{
    char name[16];
    uint32_t first, last;
    int negated, is;
    enum status st = property(r, name, &negated, &is);

    if (st != OK)
        return st;
    if (is)
        return regex_put_property(&r->sets, set, name[0] == 'w' ? "w in class" : name, negated)
                   ? OK
                   : refuse(r, "this property");
    if (next(r) == '[' || looking_at(r, "&&"))
        return refuse(r, "a class in a class");
    if ((st = character(r, &first)) != OK)
        return st;
    regex_put_point(set, first);
    if (next(r) != '-' || r->at + 1 >= r->n || r->s[r->at + 1] == ']')
        return r->fold && first >= 0x80 ? refuse(r, "a character beyond ASCII in (?i:)") : OK;
    r->at++;
    if (next(r) == '[' || (next(r) == '\\' && strchr("sSdDwWpP", r->s[r->at + 1])))
        return refuse(r, "this range");
    if ((st = character(r, &last)) != OK)
        return st;
    if (last < first || (r->fold && last >= 0x80))
        return refuse(r, "this range");
    buffer_text(set, "-");
    regex_put_point(set, last);
    return OK;
}

/* Behind the bracket. */
static enum status class(struct reader *r) {
    size_t begin; enum status st = OK;

    buffer_text(r->out, "[");
    if (next(r) == '^'){ if (r->fold) return refuse(r, "a negated class in (?i:)");
                         buffer_text(r->out, "^"); r->at++; }
begin = r->at;
while (st == OK && next(r) != ']') {
    if (next(r) < 0)
        return refuse(r, "a class without end");
    st = class_item(r, r->out);
}
if (st == OK && r->at == begin)
    return refuse(r, "an empty class");
r->at++;
r->last = 0;
buffer_text(r->out, "]");
return st;
}

/* ---- groups, repeats ---- */

static enum status alternatives(struct reader *r);

static enum status group(struct reader *r, int *is_look)
{
    static const char *const kinds[] = { "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>" };
    const char *kind = "(?:";
    int fold = r->fold;
    size_t skip = 1;
    enum status st;

    if (looking_at(r, "(?")) {
        int i = 0;

        while (i < COUNT_OF(kinds) && !looking_at(r, kinds[i]))
            i++;
        if (i == COUNT_OF(kinds))
            return refuse(r, "this group");
        kind = kinds[i];
        skip = strlen(kind);
        *is_look = strpbrk(kind, "=!") != NULL;
    }
    if (++r->depth > DEPTH)
        return refuse(r, "so deep a nesting");
    r->at += skip;
    r->fold |= kind[2] == 'i';
    r->last = 0;
    buffer_text(r->out, kind);
    if ((st = alternatives(r)) != OK)
        return st;
    if (next(r) != ')')
        return refuse(r, "a group without end");
    r->at++;
    r->depth--;
    r->fold = fold;
    r->last = 0;
    buffer_text(r->out, ")");
    return OK;
}

static enum status atom(struct reader *r, int *is_look)
{
    char name[16];
    uint32_t c;
    int negated, is, first = next(r);
    enum status st;

    if (first == '(')
        return group(r, is_look);
    if (first == '[') {
        r->at++;
        return class(r);
    }
    if (first == '.' || first == '^' || first == '$') {
        *is_look = first != '.';
        r->last = 0;
        buffer_add(r->out, r->s + r->at++, 1);
        return OK;
    }
    if (strchr("*+?{", first))
        return refuse(r, "a repeat of nothing");
    if ((st = property(r, name, &negated, &is)) != OK)
        return st;
    if (is) {
        r->last = 0;
        buffer_text(r->out, negated ? "[^" : "[");
        if (!regex_put_property(&r->sets, r->out, name, 0))
            return refuse(r, "this property");
        buffer_text(r->out, "]");
        return OK;
    }
    if ((st = character(r, &c)) != OK || (st = check_fold(r, c)) != OK)
        return st;
    put_literal(r, c);
    return OK;
}

static int number(struct reader *r)
{
    int v = -1;

    for (; next(r) >= '0' && next(r) <= '9'; r->at++)
        v = v > REPEAT_MAX ? v : (v < 0 ? 0 : v) * 10 + next(r) - '0';
    return v;
}

/* {n} {n,} {n,m} {,m}: behind the brace. */
static enum status interval(struct reader *r, char text[64], int *fixed)
{
    int lo = number(r), hi = lo;

    *fixed = next(r) != ',';
    if (!*fixed) {
        r->at++;
        hi = number(r);
    }
    if (next(r) != '}' || (lo < 0 && hi < 0) || lo > REPEAT_MAX || hi > REPEAT_MAX ||
        (hi >= 0 && lo > hi))
        return refuse(r, "this repeat");
    r->at++;
    if (*fixed)
        snprintf(text, 64, "{%d}", lo);
    else if (hi < 0)
        snprintf(text, 64, "{%d,}", lo);
    else
        snprintf(text, 64, "{%d,%d}", lo < 0 ? 0 : lo, hi);
    return OK;
}

/* What follows an atom that begins at out->at[begin]. A + behind an interval repeats it; behind
 * another repeat it makes that possessive. */
static enum status repeat(struct reader *r, size_t begin, int is_look)
{
    char text[64] = { 0 };
    int is_interval = next(r) == '{', fixed = 0, mode;
    enum status st;

    if (next(r) < 0 || !strchr("*+?{", next(r)))
        return OK;
    if (is_look)
        return refuse(r, "a repeat of a place");
    text[0] = r->s[r->at++];
    if (is_interval && (st = interval(r, text, &fixed)) != OK)
        return st;
    r->last = 0;
    buffer_text(r->out, text);
    mode = next(r);
    if (mode == '?' && !fixed) {
        r->at++;
        buffer_text(r->out, "?");
    } else if (mode == '+' && is_interval) {
        r->at++;
        buffer_text(r->out, ")+");
        buffer_add(r->out, "   ", 3);
        memmove(r->out->at + begin + 3, r->out->at + begin, r->out->n - begin - 3);
        memcpy(r->out->at + begin, "(?:", 3);
    } else if (mode == '+') {
        r->at++;
        buffer_text(r->out, "+");
    }
    return next(r) >= 0 && strchr("*+?{", next(r)) ? refuse(r, "a repeat of a repeat") : OK;
}

static enum status alternatives(struct reader *r)
{
    enum status st = OK;

    while (st == OK && next(r) >= 0 && next(r) != ')') {
        size_t begin = r->out->n;
        int is_look = 0;

        if (next(r) == '|') {
            r->at++;
            r->last = 0;
            buffer_text(r->out, "|");
            continue;
        }
        if ((st = atom(r, &is_look)) == OK)
            st = repeat(r, begin, is_look);
    }
    return st;
}

enum status regex_translate(const char *s, size_t n, const char *where, struct buffer *out,
                            struct err *e)
{
    struct reader r = { .s = s, .n = n, .out = out, .where = where, .e = e };
    enum status st;

    if (n == 0 || n > PATTERN_MAX)
        return err_set(e, E_FILE, "%s: a regular expression of %zu bytes is not supported", where,
                       n);
    st = alternatives(&r);
    regex_sets_free(&r.sets);
    return st == OK && r.at < n ? refuse(&r, "a bracket without beginning") : st;
}
