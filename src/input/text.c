#include "input/text.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void reserve(struct text *t, size_t more)
{
    size_t room = t->room ? t->room : 1024;

    while (room < t->n + more + 1)
        room *= 2;
    if (room > t->room)
        t->s = mem_grow(t->s, t->room, room);
    t->room = room;
}

void text_put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    reserve(t, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

/* Bytes since the start of the line. */
static size_t column_now(const struct text *t)
{
    size_t start = t->n;

    while (start > 0 && t->s[start - 1] != '\n')
        start--;
    return t->n - start;
}

void text_pad(struct text *t, size_t column)
{
    while (column_now(t) < column)
        text_put(t, " ");
}

void text_wrap(struct text *t, size_t column, const char *lead, const char *s)
{
    while (*s) {
        size_t n = strcspn(s, " ");

        if (column_now(t) + 1 + n > TEXT_WIDTH) {
            text_put(t, "\n");
            text_pad(t, column);
            text_put(t, "%s", lead);
        }
        text_put(t, " %.*s", (int)n, s);
        s += n + strspn(s + n, " ");
    }
}
