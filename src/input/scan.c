#include "input/scan.h"

#include "base/arena.h"

#include <string.h>

enum { VALUES_MAX = 4096 }; /* of one statement; more than any list holds */

char scan_peek_at(const struct scan *p, size_t at)
{
    return at < p->s->n ? p->s->text[at] : 0;
}

char scan_peek(const struct scan *p)
{
    return scan_peek_at(p, p->at);
}

int scan_at_end(const struct scan *p)
{
    return p->at >= p->s->n;
}

static int is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int scan_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_name(char c)
{
    return scan_is_letter(c) || c == '_' || (c >= '0' && c <= '9');
}

/* Ends a value without quotes. */
int scan_is_separator(char c)
{
    return is_blank(c) || (c && strchr(",/!;'\"=&$#()", c));
}

int scan_opens(char c)
{
    return c == '&' || c == '$';
}

size_t scan_skip_name(const struct scan *p, size_t at)
{
    while (at < p->s->n && is_name(p->s->text[at]))
        at++;
    return at;
}

size_t scan_skip_line(const struct scan *p, size_t at)
{
    const char *end = at < p->s->n ? memchr(p->s->text + at, '\n', p->s->n - at) : NULL;

    return end ? (size_t)(end - p->s->text) : p->s->n;
}

/* Blanks, ends of lines and comments. */
size_t scan_skip_blank(const struct scan *p, size_t at)
{
    for (; at < p->s->n; at++) {
        char c = p->s->text[at];

        if (c == '!')
            at = scan_skip_line(p, at);
        else if (!is_blank(c))
            break;
    }
    return at < p->s->n ? at : p->s->n;
}

static void add_value(struct scan *p, enum value_kind kind, size_t at, size_t n, int64_t repeat)
{
    if (p->n == VALUES_MAX) {
        SCAN_COMPLAIN(p, at, "more than %d values", VALUES_MAX);
        return;
    }
    if (p->n == p->room) {
        int room = p->room ? 2 * p->room : 64;

        p->values = mem_grow(p->values, (size_t)p->room * sizeof *p->values,
                             (size_t)room * sizeof *p->values);
        p->room = room;
    }
    p->values[p->n++] = (struct value){ kind, at, n, repeat };
}

/* A name with = or (...) = or % behind it starts the next statement. */
int scan_is_statement(const struct scan *p, size_t at)
{
    size_t end = scan_skip_name(p, at), limit;

    if (!scan_is_letter(scan_peek_at(p, at)) || end == at)
        return 0;
    end = scan_skip_blank(p, end);
    if (scan_peek_at(p, end) == '(') {
        for (limit = end + 64; end < limit && end < p->s->n && p->s->text[end] != ')'; end++)
            if (p->s->text[end] == '\n')
                return 0;
        if (scan_peek_at(p, end) != ')')
            return 0;
        end = scan_skip_blank(p, end + 1);
        return scan_peek_at(p, end) == '=' || scan_peek_at(p, end) == '(';
    }
    return scan_peek_at(p, end) == '=' || scan_peek_at(p, end) == '%';
}

/* Only blanks lie between the start of the line and at. */
static int is_first_of_line(const struct scan *p, size_t at)
{
    while (at > 0 && p->s->text[at - 1] != '\n')
        if (!is_blank(p->s->text[--at]))
            return 0;
    return 1;
}

/* A key, or `end`, that begins a line: its = was forgotten. */
static int is_lost_statement(const struct scan *p, size_t at)
{
    size_t n = scan_skip_name(p, at) - at;
    const char *word = p->s->text + at;

    return is_first_of_line(p, at) && scan_is_letter(*word) &&
           (table_is_key(p->r->table, word, n) || value_is_word(word, n, "end"));
}

/* &end or $end, whatever follows the word. */
int scan_is_group_end(const struct scan *p, size_t at)
{
    return scan_opens(scan_peek_at(p, at)) &&
           value_is_word(p->s->text + at + 1, scan_skip_name(p, at + 1) - at - 1, "end");
}

/* From a quote to behind its partner; values hold both. */
static void scan_text(struct scan *p, int64_t repeat)
{
    size_t start = p->at, end = start + 1;
    char quote = scan_peek(p);

    for (; end < p->s->n && p->s->text[end] != '\n'; end++) {
        if (p->s->text[end] != quote)
            continue;
        if (scan_peek_at(p, end + 1) != quote || end + 1 >= p->s->n)
            break;
        end++;
    }
    if (end >= p->s->n || p->s->text[end] != quote) {
        SCAN_COMPLAIN(p, start, "the quote opened here is not closed on its line");
        p->lost = 1;
        p->at = end;
        return;
    }
    p->at = end + 1;
    add_value(p, VALUE_TEXT, start, p->at - start, repeat);
    if (!scan_at_end(p) && !is_blank(scan_peek(p)) && !strchr(",/!;&$#", scan_peek(p)))
        SCAN_COMPLAIN(p, p->at, "a comma or a blank is missing after %s",
                      complaint_quote(p->s->text + start, p->at - start).s);
}

/* A word goes on over a slash that a path has: runs/x, /tmp, 1/2. */
size_t scan_skip_word(const struct scan *p, size_t at)
{
    for (; at < p->s->n; at++) {
        char c = p->s->text[at], next = scan_peek_at(p, at + 1);

        if (c == '/' && (is_name(next) || (next && strchr(".~-", next))))
            continue;
        if (scan_is_separator(c))
            break;
    }
    return at;
}

/* r*value, r*'text', r* (nulls), or the word itself. */
static void scan_word(struct scan *p)
{
    size_t start = p->at, end = scan_skip_word(p, start), digits = start, body = start;
    const char *t = p->s->text;
    int64_t repeat = 1;

    while (digits < end && t[digits] >= '0' && t[digits] <= '9')
        digits++;
    p->at = end;
    if (digits < end && t[digits] == '*') {
        body = digits + 1;
        if (digits == start || value_read_int(t + start, digits - start, &repeat) != VALUE_FINE ||
            repeat < 1) {
            SCAN_COMPLAIN(
                p, start,
                "`%s`: a repeat count is a whole number above 0 right before the *, as in 3*7",
                complaint_quote(t + start, end - start).s);
            return;
        }
    }
    if (scan_peek(p) == '\'' || scan_peek(p) == '"') {
        if (body != end) {
            if (end - start == 1 && strchr("bozxBOZX", t[start]))
                SCAN_COMPLAIN(p, start, "write the number in decimal, not as %s'...'",
                              complaint_quote(t + start, 1).s);
            SCAN_COMPLAIN(p, end, "a comma or a blank is missing after `%s`",
                          complaint_quote(t + start, end - start).s);
            scan_text(p, 1);
        } else {
            scan_text(p, repeat);
        }
        return;
    }
    add_value(p, body == end ? VALUE_NULL : VALUE_WORD, body, end - body, repeat);
}

/* What no value can start with. Steps over it. */
void scan_stray(struct scan *p)
{
    char c = scan_peek(p);

    if (c == ';')
        SCAN_COMPLAIN(p, p->at,
                      "`;` does not separate values here: use a comma, a blank or a new line");
    else if (c == '#')
        SCAN_COMPLAIN(p, p->at, "`#` starts no comment here: use `!`");
    else
        SCAN_COMPLAIN(p, p->at, "unexpected `%s`", complaint_quote(&c, 1).s);
    p->at = c == '#' ? scan_skip_line(p, p->at) : p->at + 1;
}

/* Values up to the next statement or the end of the group. Only commas can make nulls. Returns
 * commas seen. */
int scan_values(struct scan *p)
{
    int comma = 1, commas = 0; /* comma: since the last value */

    for (;;) {
        char c;

        p->at = scan_skip_blank(p, p->at);
        c = scan_peek(p);
        if (scan_at_end(p) || (scan_opens(c)) || (c == '/' && scan_skip_word(p, p->at) == p->at))
            return commas;
        if (c == ',') {
            if (comma)
                add_value(p, VALUE_NULL, p->at, 0, 1);
            comma = 1;
            commas++;
            p->at++;
        } else if (c == '\'' || c == '"') {
            scan_text(p, 1);
            comma = 0;
        } else if (scan_is_separator(c) && c != '/') {
            scan_stray(p);
        } else {
            if (scan_is_statement(p, p->at) || (p->n && is_lost_statement(p, p->at)))
                return commas;
            scan_word(p);
            comma = 0;
        }
    }
}
