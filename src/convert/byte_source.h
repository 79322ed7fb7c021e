/* The bytes of an input from its beginning to its end: a file, plain or packed (told by its first
 * bytes), or standard input. */
#ifndef CONVERT_BYTE_SOURCE_H
#define CONVERT_BYTE_SOURCE_H
#include "base/err.h"

struct byte_source;

/* path "-": standard input. */
enum status byte_source_open(struct byte_source **s, const char *path, struct err *e) LOCAL;
/* *got < n at the end only. E_FILE: packed data that is damaged or cut. */
enum status byte_source_read(struct byte_source *s, void *to, size_t n, size_t *got,
                             struct err *e) LOCAL;
/* Passes over n bytes of the text. E_FILE: there are fewer. */
enum status byte_source_skip(struct byte_source *s, int64_t n, struct err *e) LOCAL;
int64_t byte_source_done(
    const struct byte_source *s) LOCAL; /* bytes of the file, as it is, read so far */
const char *byte_source_path(const struct byte_source *s) LOCAL;
void byte_source_close(struct byte_source *s) LOCAL; /* NULL is fine */
#endif
