/* A text that grows. */
#ifndef INPUT_TEXT_H
#define INPUT_TEXT_H
#include "base/types.h"

struct text {
    char *s; /* from mem_take; NULL: empty */
    size_t n, room;
};
void text_put(struct text *t, const char *fmt, ...) LOCAL __attribute__((format(printf, 2, 3)));
/* Ends the line so far with blanks up to this column. */
void text_pad(struct text *t, size_t column) LOCAL;
/* The words of s, in lines of at most TEXT_WIDTH; new ones begin with blanks up to column, then
 * lead. */
enum { TEXT_WIDTH = 100 };
void text_wrap(struct text *t, size_t column, const char *lead, const char *s) LOCAL;
#endif
