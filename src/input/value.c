#include "input/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 400 }; /* longest number that is read */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(const char *s, size_t n, size_t i)
{
    while (i < n && is_digit(s[i]))
        i++;
    return i;
}

int value_is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(s, word, n) == 0;
}

enum value_fault value_read_int(const char *s, size_t n, int64_t *v)
{
    int minus = n > 0 && s[0] == '-';
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
    int64_t x = 0;

    if (i == n || skip_digits(s, n, i) != n)
        return VALUE_SYNTAX;
    for (; i < n; i++) {
        int d = s[i] - '0';

        if (__builtin_mul_overflow(x, (int64_t)10, &x) ||
            __builtin_add_overflow(x, (int64_t)(minus ? -d : d), &x))
            return VALUE_OVERFLOW;
    }
    *v = x;
    return VALUE_FINE;
}

static int is_not_finite(const char *s, size_t n)
{
    static const char *const words[] = { "inf", "infinity", "nan" };
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');

    for (int k = 0; k < COUNT_OF(words); k++)
        if (value_is_word(s + i, n - i, words[k]))
            return 1;
    return n - i > 4 && strncasecmp(s + i, "nan(", 4) == 0;
}

/* 1d-3, 1.5Q2 and 1+3 become what strtod reads. Returns 0 if it is no number. */
static int normalise_real(const char *s, size_t n, char *out)
{
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+'), digits, start = i;

    i = skip_digits(s, n, i);
    digits = i - start;
    if (i < n && s[i] == '.') {
        start = i + 1;
        i = skip_digits(s, n, start);
        digits += i - start;
    }
    if (!digits)
        return 0;
    memcpy(out, s, i);
    out += i;
    if (i < n) {
        int letter = strchr("eEdDqQ", s[i]) != NULL;

        *out++ = 'e';
        i += (size_t)letter;
        if (i < n && (s[i] == '+' || s[i] == '-'))
            *out++ = s[i++];
        else if (!letter)
            return 0;
        if (i == n || skip_digits(s, n, i) != n)
            return 0;
        memcpy(out, s + i, n - i);
        out += n - i;
    }
    *out = 0;
    return 1;
}

enum value_fault value_read_real(const char *s, size_t n, double *v)
{
    char text[NUMBER_MAX + 8];
    double x;

    if (is_not_finite(s, n))
        return VALUE_NOT_FINITE;
    if (n > NUMBER_MAX || memchr(s, 0, n) || !normalise_real(s, n, text))
        return VALUE_SYNTAX;
    x = strtod(text, NULL);
    if (isinf(x))
        return VALUE_OVERFLOW;
    if (x == 0 && strcspn(text, "123456789") < strcspn(text, "e"))
        return VALUE_UNDERFLOW;
    *v = x;
    return VALUE_FINE;
}

enum value_fault value_read_bool(const char *s, size_t n, int *v)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {
        { ".true.", 1 }, { ".false.", 0 }, { "true", 1 }, { "false", 0 }, { "t", 1 }, { "f", 0 },
    };

    for (int i = 0; i < COUNT_OF(words); i++)
        if (value_is_word(s, n, words[i].word)) {
            *v = words[i].value;
            return VALUE_FINE;
        }
    return VALUE_SYNTAX;
}

const char *value_suggest_bool(const char *s, size_t n)
{
    static const char *const yes[] = { "yes", "on", "1", ".t.", ".true", "true.", "y", "enabled" };
    static const char *const no[] = { "no",     "off", "0",    ".f.",     ".false",
                                      "false.", "n",   "none", "disabled" };

    for (int i = 0; i < COUNT_OF(yes); i++)
        if (value_is_word(s, n, yes[i]))
            return ".true.";
    for (int i = 0; i < COUNT_OF(no); i++)
        if (value_is_word(s, n, no[i]))
            return ".false.";
    return NULL;
}

enum value_fault value_read_text(const char *s, size_t n, char *buf, size_t room)
{
    size_t out = 0;

    for (size_t i = 1; i + 1 < n; i++) {
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return VALUE_SYNTAX;
        if (out + 1 == room)
            return VALUE_OVERFLOW;
        buf[out++] = s[i];
        i += s[i] == s[0]; /* the second of a doubled quote */
    }
    buf[out] = 0;
    return VALUE_FINE;
}

/* 1_8 is 1 with a kind, 1_000 is a thousand. */
static int suggest_underscore(const char *s, size_t n, char *buf, size_t room)
{
    const char *bar = memchr(s, '_', n);
    size_t head = bar ? (size_t)(bar - s) : 0, out = 0;
    int kind = bar && n - head <= 3 && skip_digits(s, n, head + 1) == n;
    size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');

    if (!bar || n >= room)
        return 0;
    for (size_t i = 0; i < (kind ? head : n); i++)
        if (s[i] != '_')
            buf[out++] = s[i];
    buf[out] = 0;
    return out > sign && skip_digits(buf, out, sign) == out;
}

void value_suggest_int(const char *s, size_t n, char *buf, size_t room)
{
    double x;

    buf[0] = 0;
    if (suggest_underscore(s, n, buf, room))
        return;
    buf[0] = 0;
    if (n > 2 && n < 18 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        char text[20], *end;
        long long v;

        memcpy(text, s + 2, n - 2);
        text[n - 2] = 0;
        v = strtoll(text, &end, 16);
        if (*end == 0 && strlen(text) == n - 2 && v > 0)
            snprintf(buf, room, "%lld", v);
    } else if (value_read_real(s, n, &x) == VALUE_FINE && x == rint(x) && fabs(x) < 1e15) {
        snprintf(buf, room, "%" PRId64, (int64_t)x);
    }
}
