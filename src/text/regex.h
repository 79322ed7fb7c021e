/* Regular expressions as Oniguruma (the engine of the `tokenizers` library) reads them, written as
 * PCRE2's. What the two read differently is written so that it means the same, or refused. */
#ifndef TEXT_REGEX_H
#define TEXT_REGEX_H
#include "text/buffer.h"

/* out: a pattern for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE with the newline LF.
 * E_FILE begins with `where`. */
enum status regex_translate(const char *s, size_t n, const char *where, struct buffer *out,
                            struct err *e) LOCAL;
/* ---- sets; regex_set.c ---- */

struct regex_sets { /* what was written for a property before; zeroed before use */
    struct regex_set {
        char name[16];
        int negated;
        struct buffer text;
    } set[16];
    int n;
};
/* Appends a property as items of a class: Unicode 16's, whatever PCRE2 knows. Returns 0 if there is
 * no such property. */
int regex_put_property(struct regex_sets *s, struct buffer *out, const char *name,
                       int negated) LOCAL;
void regex_sets_free(struct regex_sets *s) LOCAL;
void regex_put_point(struct buffer *out, uint32_t c) LOCAL;
#endif
