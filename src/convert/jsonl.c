#include "convert/jsonl.h"

#include <string.h>

#include "base/arena.h"
#include "text/utf8.h"

enum { PIECE = 1 << 20 };

struct jsonl {
    struct file *f;
    const char *field;
    int64_t size, at; /* bytes of the file, and how many of them are in the buffer or behind it */
    int64_t line;
    char *buffer; /* [room]; the unread part is [used, filled) */
    size_t room, used, filled;
    json_t *value; /* the present line */
};

struct jsonl *jsonl_open(struct file *f, const char *field)
{
    struct jsonl *j = mem_take(sizeof *j);

    j->f = f;
    j->field = field;
    j->size = file_size(f);
    j->room = PIECE;
    j->buffer = mem_take(j->room);
    return j;
}

void jsonl_close(struct jsonl *j)
{
    if (!j)
        return;
    json_decref(j->value);
    mem_give(j->buffer);
    mem_give(j);
}

int64_t jsonl_done(const struct jsonl *j)
{
    return j->at - (int64_t)(j->filled - j->used);
}

/* Another piece behind the unread part, which moves to the front. */
static enum status fill(struct jsonl *j, struct err *e)
{
    size_t n = (size_t)min_i64(PIECE, j->size - j->at);
    enum status st;

    memmove(j->buffer, j->buffer + j->used, j->filled - j->used);
    j->filled -= j->used;
    j->used = 0;
    if (j->filled > JSONL_LINE_MAX)
        return jsonl_too_long(j->f->path, j->line + 1, e);
    if (j->filled + n > j->room) {
        j->buffer = mem_grow(j->buffer, j->room, 2 * j->room);
        j->room *= 2;
    }
    st = file_read_at(j->f, j->buffer + j->filled, n, j->at, e);
    j->filled += n;
    j->at += (int64_t)n;
    return st;
}

/* The next line without its newline; *line NULL at the end of the file. */
static enum status next_line(struct jsonl *j, const char **line, size_t *bytes, struct err *e)
{
    size_t seen = 0; /* of the unread part: no newline in it */
    const char *start, *end = NULL;
    enum status st;

    for (;;) {
        start = j->buffer + j->used;
        end = memchr(start + seen, '\n', j->filled - j->used - seen);
        seen = j->filled - j->used;
        if (end || j->at == j->size)
            break;
        if ((st = fill(j, e)) != OK)
            return st;
    }
    *line = end || seen ? start : NULL;
    *bytes = end ? (size_t)(end - start) : seen;
    j->used += *bytes + (end != NULL);
    j->line++;
    return OK;
}

enum status jsonl_too_long(const char *path, int64_t number, struct err *e)
{
    return err_set(
        e, E_FILE,
        "%s:%lld: the line is longer than %zu MiB, and a line must fit in memory; split it", path,
        (long long)number, JSONL_LINE_MAX >> 20);
}

void jsonl_pass_mark(const char **line, size_t *n)
{
    if (*n >= 3 && memcmp(*line, "\xef\xbb\xbf", 3) == 0) {
        *line += 3;
        *n -= 3;
    }
}

int jsonl_is_blank(const char *s, size_t n)
{
    while (n && strchr(" \t\r", s[n - 1]) && s[n - 1])
        n--;
    return n == 0;
}

enum status jsonl_parse(json_t **value, const struct jsonl_line *at, const char *line, size_t n,
                        struct err *e)
{
    struct utf8_check u = { 0 };
    json_error_t why;

    if (utf8_check_add(&u, line, n) || utf8_check_end(&u))
        return err_set(
            e, E_FILE,
            "%s:%lld: not UTF-8 at byte %lld of the line (0x%02x); convert the file (iconv)",
            at->path, (long long)at->number, (long long)u.at + 1,
            u.at < (int64_t)n ? (unsigned char)line[u.at] : 0);
    *value = json_loadb(line, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
                        &why);
    if (!*value)
        return err_set(e, E_FILE, "%s:%lld: not JSON at byte %d of the line: %s", at->path,
                       (long long)at->number, why.position, why.text);
    if (!json_is_object(*value))
        return err_set(e, E_FILE,
                       "%s:%lld: not an object; each line must be one, such as {\"%s\": \"...\"}",
                       at->path, (long long)at->number, at->field);
    return OK;
}

enum status jsonl_field(const json_t *value, const struct jsonl_line *at, const char **text,
                        size_t *bytes, struct err *e)
{
    const json_t *field = json_object_get(value, at->field);

    if (!field)
        return err_set(e, E_FILE, "%s:%lld: no field \"%s\"; choose another with --field", at->path,
                       (long long)at->number, at->field);
    if (!json_is_string(field))
        return err_set(e, E_FILE, "%s:%lld: field \"%s\" is not a text", at->path,
                       (long long)at->number, at->field);
    *text = json_string_value(field);
    *bytes = json_string_length(field);
    return OK;
}

static struct jsonl_line line_of(const struct jsonl *j)
{
    return (struct jsonl_line){ j->f->path, j->field, j->line };
}

enum status jsonl_next_object(struct jsonl *j, const json_t **object, struct err *e)
{
    struct jsonl_line at;
    const char *line;
    size_t n;
    enum status st;

    json_decref(j->value);
    j->value = NULL;
    *object = NULL;
    do {
        if ((st = next_line(j, &line, &n, e)) != OK || !line)
            return st;
        if (j->line == 1)
            jsonl_pass_mark(&line, &n);
    } while (jsonl_is_blank(line, n));
    at = line_of(j);
    st = jsonl_parse(&j->value, &at, line, n, e);
    *object = st == OK ? j->value : NULL;
    return st;
}

enum status jsonl_next(struct jsonl *j, const char **text, size_t *bytes, struct err *e)
{
    const json_t *object;
    enum status st = jsonl_next_object(j, &object, e);
    struct jsonl_line at = line_of(j);

    *text = NULL;
    return st == OK && object ? jsonl_field(object, &at, text, bytes, e) : st;
}

int64_t jsonl_line(const struct jsonl *j)
{
    return j->line;
}
