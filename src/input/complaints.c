#include "input/complaints.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_WIDTH = 96 }; /* columns of the source line that are shown */

/* Bytes of the UTF-8 character at s, 0 if it is none. */
static size_t utf8_length(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    size_t len = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;

    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

/* Copy one character, '?' for what a terminal should not see. Returns bytes read; *out grows by
 * bytes written. */
static size_t copy_character(char **out, const char *s, size_t n)
{
    size_t len = utf8_length(s, n);
    unsigned char c = (unsigned char)s[0];

    if (c == '\t') {
        *(*out)++ = ' ';
        return 1;
    }
    if (!len || c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s[1] < 0xa0)) {
        *(*out)++ = '?';
        return len ? len : 1;
    }
    memcpy(*out, s, len);
    *out += len;
    return len;
}

struct quote complaint_quote(const char *s, size_t n)
{
    struct quote q;
    char *out = q.s;
    size_t i = 0;

    while (i < n && out < q.s + sizeof q.s - 8)
        i += copy_character(&out, s + i, n - i);
    if (i < n) {
        memcpy(out, "...", 3);
        out += 3;
    }
    *out = 0;
    return q;
}

void complaint_locate(const struct source *s, size_t at, int *line, int *column)
{
    size_t start = 0, i;

    *line = 1;
    *column = 1;
    for (i = 0; i < at && i < s->n; i++)
        if (s->text[i] == '\n') {
            ++*line;
            start = i + 1;
        }
    for (i = start; i < at && i < s->n; ++*column) {
        size_t len = utf8_length(s->text + i, s->n - i);

        i += len ? len : 1;
    }
}

int complaints_full(const struct complaints *c)
{
    return c->n == COMPLAINTS_MAX;
}

int complaints_warned_enough(const struct complaints *c)
{
    return c->quiet || c->warnings > COMPLAINT_WARNINGS;
}

static void keep(struct complaints *c, const struct source *s, size_t at, int line, int column,
                 const char *fmt, va_list ap)
{
    struct complaint *x;

    if (complaints_full(c)) {
        c->more++;
        return;
    }
    x = &c->list[c->n++];
    x->source = s;
    x->at = at;
    x->line = line;
    x->column = column;
    if (s && line < 0)
        complaint_locate(s, at, &x->line, &x->column);
    vsnprintf(x->text, sizeof x->text, fmt, ap);
}

void complaint_add(struct complaints *c, const struct source *s, size_t at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    keep(c, s, at, -1, 0, fmt, ap);
    va_end(ap);
}

void complaint_add_line(struct complaints *c, const struct source *s, int line, int column,
                        const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    keep(c, s, 0, line, column, fmt, ap);
    va_end(ap);
}

static void print_place(char *out, size_t room, const struct source *s, int line, int column)
{
    if (s->is_set || !line)
        snprintf(out, room, "%s: ", complaint_quote(s->name, strlen(s->name)).s);
    else
        snprintf(out, room, "%.200s:%d:%d: ", s->name, line, column);
}

void complaint_warn(struct complaints *c, const struct source *s, size_t at, const char *fmt, ...)
{
    char place[256], text[COMPLAINT_TEXT];
    int line, column;
    va_list ap;

    if (complaints_warned_enough(c))
        return;
    if (c->warnings++ == COMPLAINT_WARNINGS) {
        warn("%.200s: more warnings are not shown", s->name);
        return;
    }
    complaint_locate(s, at, &line, &column);
    print_place(place, sizeof place, s, line, column);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    warn("%s%s", place, text);
}

/* The source line and a caret below it, cut to LINE_WIDTH around the place. */
static void print_line(char *out, size_t room, const struct complaint *x)
{
    const char *t = x->source->text;
    size_t at = x->at < x->source->n ? x->at : x->source->n;
    size_t start = at, end = at;
    char line[4 * LINE_WIDTH + 8], *o = line;
    int before = 0;

    while (start > 0 && t[start - 1] != '\n' && at - start < 2 * LINE_WIDTH / 3)
        start--;
    while (start < at && ((unsigned char)t[start] & 0xc0) == 0x80)
        start++;
    while (end < x->source->n && t[end] != '\n' && end - start < LINE_WIDTH)
        end++;
    while (end < x->source->n && end > at && ((unsigned char)t[end] & 0xc0) == 0x80)
        end--;
    if (end > start && t[end - 1] == '\r')
        end--;
    for (size_t i = start; i < end;) {
        before += i < at;
        i += copy_character(&o, t + i, end - i);
    }
    *o = 0;
    snprintf(out, room, "\n    %s\n    %*s^", line, before, "");
}

static void print_complaint(char *out, size_t room, const struct complaint *x, int with_line)
{
    char place[256];
    size_t n;

    print_place(place, sizeof place, x->source, x->line, x->column);
    snprintf(out, room, "%serror: %s", place, x->text);
    n = strlen(out);
    if (with_line && x->line && x->source->text && !x->source->is_set)
        print_line(out + n, room - n, x);
}

/* Returns how many complaints fitted. */
static int print_all(char *out, size_t room, const struct complaint *const *order, int n,
                     int with_line)
{
    char one[1536];
    size_t used = 0, len;

    for (int i = 0; i < n; i++) {
        print_complaint(one, sizeof one, order[i], with_line);
        len = strlen(one);
        if (used + len + 64 > room) /* 64: for the last line */
            return i;
        if (i)
            out[used++] = '\n';
        memcpy(out + used, one, len + 1);
        used += len;
    }
    return n;
}

static int comes_after(const struct complaint *a, const struct complaint *b)
{
    int a_rank = !a->line ? 2 : a->source->is_set, b_rank = !b->line ? 2 : b->source->is_set;

    if (a_rank != b_rank)
        return a_rank > b_rank;
    return a_rank == 0 && (a->line > b->line || (a->line == b->line && a->column > b->column));
}

enum status complaints_report(const struct complaints *c, struct err *e)
{
    const struct complaint *order[COMPLAINTS_MAX];
    char text[sizeof e->text];
    int shown, rest;

    if (!c->n)
        return OK;
    for (int i = 0; i < c->n; i++) { /* insertion: stable, few */
        int k = i;

        for (; k > 0 && comes_after(order[k - 1], &c->list[i]); k--)
            order[k] = order[k - 1];
        order[k] = &c->list[i];
    }
    shown = print_all(text, sizeof text, order, c->n, 1);
    if (shown < c->n)
        shown = print_all(text, sizeof text, order, c->n, 0);
    rest = c->n - shown + c->more;
    if (rest)
        snprintf(text + strlen(text), 64, "\nand %d more error%s", rest, rest > 1 ? "s" : "");
    return err_set(e, E_INPUT, "%s", text);
}
