/* Complaints like a compiler's: place, message, source line, caret; all of them at once. */
#ifndef INPUT_COMPLAINTS_H
#define INPUT_COMPLAINTS_H
#include "base/err.h"

enum { COMPLAINTS_MAX = 50, COMPLAINT_TEXT = 400, COMPLAINT_WARNINGS = 20 };

struct source {
    const char *name; /* of the file; of a --set: "--set " and all of it */
    const char *text; /* NULL: not at hand */
    size_t n;
    int is_set; /* a --set: its name is place enough */
};
struct complaint {
    const struct source *source;
    size_t at;        /* byte in the text */
    int line, column; /* from 1; line 0: about no place in it */
    char text[COMPLAINT_TEXT];
};
struct complaints {
    struct complaint list[COMPLAINTS_MAX];
    int n, more;         /* kept; beyond COMPLAINTS_MAX */
    int quiet, warnings; /* no warnings at all; warnings so far */
};

/* An error at byte `at` of s. */
void complaint_add(struct complaints *c, const struct source *s, size_t at, const char *fmt,
                   ...) LOCAL __attribute__((format(printf, 4, 5)));
/* The same where only line and column are left (s->text is NULL), or no place is meant (line 0). */
void complaint_add_line(struct complaints *c, const struct source *s, int line, int column,
                        const char *fmt, ...) LOCAL __attribute__((format(printf, 5, 6)));
/* What is added now is only counted: spare the work of a good message. */
int complaints_full(const struct complaints *c) LOCAL;
int complaints_warned_enough(const struct complaints *c) LOCAL;
/* One line by warn(); after COMPLAINT_WARNINGS of them silent. */
void complaint_warn(struct complaints *c, const struct source *s, size_t at, const char *fmt,
                    ...) LOCAL __attribute__((format(printf, 4, 5)));
/* All in order of place into *e: E_INPUT; OK when there are none. When room is short, without
 * source lines. */
enum status complaints_report(const struct complaints *c, struct err *e) LOCAL;
/* Line and column (in characters) of a byte, from 1. */
void complaint_locate(const struct source *s, size_t at, int *line, int *column) LOCAL;

struct quote {
    char s[64];
};
/* What the user wrote, fit for a message: cut, and without control characters or broken UTF-8. */
struct quote complaint_quote(const char *s, size_t n) LOCAL;
#endif
