/* What the data tools share: a live line, and the two checks of an output. */
#ifndef CONVERT_PROGRESS_H
#define CONVERT_PROGRESS_H
#include "base/err.h"

struct progress { /* only on a terminal, at most ten times a second */
    const char *unit;
    int64_t all;  /* -1: not known */
    int64_t from; /* what was there at the first call */
    double started, shown;
};
struct progress progress_start(const char *unit, int64_t all) LOCAL;
void progress_show(struct progress *p, int64_t done) LOCAL;
void progress_end(struct progress *p) LOCAL;

/* An output must not be one of the inputs (E_INPUT). */
enum status output_check(const char *out, const char *in, struct err *e) LOCAL;
/* One line about a token file that was just written. */
enum status output_say(const char *path, struct err *e) LOCAL;
#endif
