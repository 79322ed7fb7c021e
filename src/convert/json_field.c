#include "convert/json_field.h"

#include "text/unicode.h"

enum { DEPTH_MAX = 16, KEYS_MAX = 32, DIGITS_MAX = 17 };

struct string { /* between the quotes */
    const char *at;
    size_t n;
    int escapes;
};
struct cursor {
    const char *p, *end;
    const char *field;
    size_t field_n;
    struct string found;
    int nfound;
};

/* ---- strings ---- */

/* A byte of eight is a quote, a backslash or below space. */
static int has_special(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\';

    return (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((x - ones * ' ') & ~x)) & highs
               ? 1
               : 0;
}

static void pass_plain(struct cursor *c)
{
    uint64_t eight;

    for (; c->end - c->p >= 8; c->p += 8) {
        memcpy(&eight, c->p, 8);
        if (has_special(eight))
            break;
    }
    while (c->p < c->end && *c->p != '"' && *c->p != '\\' && (unsigned char)*c->p >= ' ')
        c->p++;
}

/* Four hex digits, -1: they are not. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char d = p[i], low = (char)(d | 0x20);

        if (d >= '0' && d <= '9')
            v = v * 16 + d - '0';
        else if (low >= 'a' && low <= 'f')
            v = v * 16 + low - 'a' + 10;
        else
            return -1;
    }
    return v;
}

/* The bytes of the escape at p (a backslash) and its character; 0: not a valid one. */
static size_t escape(const char *p, const char *end, uint32_t *character)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *name;
    int32_t high, low;

    if (end - p < 2)
        return 0;
    if (p[1] != 'u') {
        name = p[1] ? strchr(names, p[1]) : NULL;
        *character = name ? (unsigned char)means[name - names] : 0;
        return name ? 2 : 0;
    }
    high = hex4(p + 2, end);
    *character = (uint32_t)high;
    if (high < 0 || (high >= 0xdc00 && high < 0xe000))
        return 0;
    if (high < 0xd800 || high >= 0xe000)
        return 6;
    low = end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, end) : -1;
    *character = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return low >= 0xdc00 && low < 0xe000 ? 12 : 0;
}

/* Behind the opening quote. */
static int pass_string(struct cursor *c, struct string *s)
{
    uint32_t character;
    size_t k;

    s->at = c->p;
    s->escapes = 0;
    for (;;) {
        pass_plain(c);
        if (c->p == c->end || (*c->p != '"' && *c->p != '\\'))
            return 0;
        if (*c->p == '"')
            break;
        s->escapes++;
        if ((k = escape(c->p, c->end, &character)) == 0)
            return 0;
        c->p += k;
    }
    s->n = (size_t)(c->p++ - s->at);
    return 1;
}

/* No escape is shorter than what it stands for. */
static void unescape(const struct string *s, struct buffer *room)
{
    const char *p = s->at, *end = s->at + s->n, *slash;
    char *to;
    uint32_t c;

    room->n = 0;
    if (s->n > room->room)
        buffer_grow(room, s->n);
    to = room->at;
    while ((slash = memchr(p, '\\', (size_t)(end - p))) != NULL) {
        memcpy(to, p, (size_t)(slash - p));
        to += slash - p;
        p = slash + escape(slash, end, &c);
        to += unicode_put(c, to);
    }
    memcpy(to, p, (size_t)(end - p));
    room->n = (size_t)(to + (end - p) - room->at);
}

/* ---- values ---- */

static void pass_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r' || *c->p == '\n'))
        c->p++;
}

static int next_is(struct cursor *c, char wanted)
{
    pass_space(c);
    if (c->p == c->end || *c->p != wanted)
        return 0;
    c->p++;
    return 1;
}

static int pass_digits(struct cursor *c, int most)
{
    int n = 0;

    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        n++;
    return n > 0 && n <= most;
}

/* Those that surely have a value. */
static int pass_number(struct cursor *c)
{
    if (c->p < c->end && *c->p == '-')
        c->p++;
    if (c->end - c->p >= 2 && *c->p == '0' && c->p[1] >= '0' && c->p[1] <= '9')
        return 0;
    if (!pass_digits(c, DIGITS_MAX))
        return 0;
    if (c->p < c->end && *c->p == '.' && (c->p++, !pass_digits(c, 2 * DIGITS_MAX)))
        return 0;
    if (c->p < c->end && (*c->p | 0x20) == 'e') {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
            c->p++;
        return pass_digits(c, 2);
    }
    return 1;
}

static int pass_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return 0;
    c->p += n;
    return 1;
}

static int pass_object(struct cursor *c, int depth);

static int pass_value(struct cursor *c, int depth)
{
    struct string s;

    pass_space(c);
    if (c->p == c->end || depth > DEPTH_MAX)
        return 0;
    switch (*c->p) {
    case '"':
        c->p++;
        return pass_string(c, &s);
    case '{':
        c->p++;
        return pass_object(c, depth);
    case '[':
        c->p++;
        if (next_is(c, ']'))
            return 1;
        do {
            if (!pass_value(c, depth + 1))
                return 0;
        } while (next_is(c, ','));
        return next_is(c, ']');
    case 't':
        return pass_word(c, "true");
    case 'f':
        return pass_word(c, "false");
    case 'n':
        return pass_word(c, "null");
    }
    return pass_number(c);
}

static int is_new(const struct string *key, int n)
{
    for (int i = 0; i < n; i++)
        if (key[i].n == key[n].n && memcmp(key[i].at, key[n].at, key[n].n) == 0)
            return 0;
    return !key[n].escapes;
}

static int is_field(const struct cursor *c, const struct string *key, int depth)
{
    return depth == 0 && key->n == c->field_n && memcmp(key->at, c->field, key->n) == 0;
}

/* Behind its brace. */
static int pass_object(struct cursor *c, int depth)
{
    struct string key[KEYS_MAX];
    int n = 0;

    if (next_is(c, '}'))
        return 1;
    do {
        if (n == KEYS_MAX || !next_is(c, '"') || !pass_string(c, &key[n]) || !is_new(key, n) ||
            !next_is(c, ':'))
            return 0;
        if (is_field(c, &key[n++], depth)) {
            if (!next_is(c, '"') || !pass_string(c, &c->found))
                return 0;
            c->nfound++;
        } else if (!pass_value(c, depth + 1)) {
            return 0;
        }
    } while (next_is(c, ','));
    return next_is(c, '}');
}

int json_field(const char *line, size_t n, const char *field, struct buffer *room,
               const char **text, size_t *bytes)
{
    struct cursor c = { .p = line, .end = line + n, .field = field, .field_n = strlen(field) };

    if (!next_is(&c, '{') || !pass_object(&c, 0) || c.nfound != 1)
        return 0;
    pass_space(&c);
    if (c.p != c.end)
        return 0;
    *text = c.found.at;
    *bytes = c.found.n;
    if (c.found.escapes) {
        unescape(&c.found, room);
        *text = room->at;
        *bytes = room->n;
    }
    return 1;
}
