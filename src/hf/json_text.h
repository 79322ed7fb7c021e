/* JSON: a growing text to write it, and the strict way in which all of it is read. */
#ifndef HF_JSON_TEXT_H
#define HF_JSON_TEXT_H
#include "base/err.h"
#include <jansson.h>

struct json_text { /* zeroed before use; s from mem_take, always ends in 0 */
    char *s;
    size_t n, room;
};
void json_text_add(struct json_text *t, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 2, 3)));
void json_text_string(struct json_text *t, const char *s,
                      size_t n) LOCAL; /* with quotes and escapes; s is UTF-8 */
/* The shortest form that reads back to the same value, always with a point or an exponent. */
void json_text_real(struct json_text *t, double x) LOCAL;

/* No duplicate keys, no nesting above 64, no text behind the value. NULL with e (E_FILE), which
 * begins with `where`. */
json_t *json_read(const char *text, size_t n, const char *where, struct err *e) LOCAL;
/* Whole file of at most max bytes. */
json_t *json_read_file(const char *path, size_t max, struct err *e) LOCAL;
#endif
