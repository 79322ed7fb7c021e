/* The lines of a jsonl file, one in memory at a time: its object, or a text field of it. */
#ifndef CONVERT_JSONL_H
#define CONVERT_JSONL_H
#include "base/file.h"

#include <jansson.h>

/* ---- one line ---- */

struct jsonl_line { /* for messages */
    const char *path, *field;
    int64_t number; /* from 1 */
};
/* A line must fit in memory: E_FILE for one of more than JSONL_LINE_MAX bytes. */
#define JSONL_LINE_MAX ((size_t)1 << 30)
enum status jsonl_too_long(const char *path, int64_t number, struct err *e) LOCAL;
void jsonl_pass_mark(const char **line, size_t *n) LOCAL; /* a file's byte order mark */
int jsonl_is_blank(const char *line, size_t n) LOCAL;
/* An object, the caller's to json_decref; NULL, or another value, with E_FILE. */
enum status jsonl_parse(json_t **value, const struct jsonl_line *at, const char *line, size_t n,
                        struct err *e) LOCAL;
/* Its member at->field, a text; it lives with the object. */
enum status jsonl_field(const json_t *value, const struct jsonl_line *at, const char **text,
                        size_t *bytes, struct err *e) LOCAL;

/* ---- a file ---- */

struct jsonl;
/* f: open for reading, kept by the caller. field: the member that holds the text. */
struct jsonl *jsonl_open(struct file *f, const char *field) LOCAL;
/* The next line's text (UTF-8, may hold 0 bytes), valid until the next call; *text NULL at the end.
 * Blank lines are passed over. E_FILE: "FILE:LINE: what is wrong". */
enum status jsonl_next(struct jsonl *j, const char **text, size_t *bytes, struct err *e) LOCAL;
/* The next line's object; *object NULL at the end. Its numbers are all reals. */
enum status jsonl_next_object(struct jsonl *j, const json_t **object, struct err *e) LOCAL;
int64_t jsonl_line(const struct jsonl *j) LOCAL; /* the present one, from 1 */
int64_t jsonl_done(const struct jsonl *j) LOCAL; /* bytes read so far */
void jsonl_close(struct jsonl *j) LOCAL;         /* NULL is fine */
#endif
