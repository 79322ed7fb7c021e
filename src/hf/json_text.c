#include "hf/json_text.h"

#include "base/arena.h"
#include "base/file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static void room_for(struct json_text *t, size_t more)
{
    size_t want = t->n + more + 1, room = t->room ? t->room : 256;

    if (want <= t->room)
        return;
    while (room < want)
        room *= 2;
    t->s = mem_grow(t->s, t->room, room);
    t->room = room;
}

void json_text_add(struct json_text *t, const char *fmt, ...)
{
    char none[1];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(none, sizeof none, fmt, ap);
    va_end(ap);
    BUG_IF(n < 0);
    room_for(t, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

void json_text_string(struct json_text *t, const char *s, size_t n)
{
    char *p;

    room_for(t, 6 * n + 2);
    p = t->s + t->n;
    *p++ = '"';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c == '"' || c == '\\') {
            *p++ = '\\';
            *p++ = (char)c;
        } else if (c < 0x20) {
            p += snprintf(p, 7, "\\u%04x", c);
        } else {
            *p++ = (char)c;
        }
    }
    *p++ = '"';
    *p = 0;
    t->n = (size_t)(p - t->s);
}

void json_text_real(struct json_text *t, double x)
{
    char b[40];

    if (x == floor(x) && fabs(x) < 1e15) {
        json_text_add(t, "%.1f", x);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(b, sizeof b, "%.*g", digits, x);
        if (strtod(b, NULL) == x)
            break;
    }
    json_text_add(t, "%s%s", b, strpbrk(b, ".e") ? "" : ".0");
}

static int too_deep(const char *s, size_t n)
{
    int depth = 0, quoted = 0;

    for (size_t i = 0; i < n; i++) {
        char c = s[i];

        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = 0;
        } else if (c == '"') {
            quoted = 1;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX)
                return 1;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return 0;
}

json_t *json_read(const char *text, size_t n, const char *where, struct err *e)
{
    json_error_t je;
    json_t *j;

    if (too_deep(text, n)) {
        err_set(e, E_FILE, "%s: JSON nested more than %d deep", where, DEPTH_MAX);
        return NULL;
    }
    j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
    if (!j)
        err_set(e, E_FILE, "%s: line %d, column %d: not valid JSON: %.150s", where, je.line,
                je.column, je.text);
    return j;
}

json_t *json_read_file(const char *path, size_t max, struct err *e)
{
    char *text;
    size_t n;
    json_t *j;

    if (file_read_text(path, max, &text, &n, e) != OK)
        return NULL;
    j = json_read(text, n, path, e);
    mem_give(text);
    return j;
}
