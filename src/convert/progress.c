#include "convert/progress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "data/tokens.h"

struct progress progress_start(const char *unit, int64_t all)
{
    double now = clock_now();

    return (struct progress){ unit, all, -1, now, now };
}

void progress_show(struct progress *p, int64_t done)
{
    double now = clock_now(), passed = now - p->started;
    char number[32], speed[32], left[32];
    double rate;

    if (p->from < 0)
        p->from = done;
    if (now - p->shown < 0.1 || done <= p->from)
        return;
    p->shown = now;
    rate = (double)(done - p->from) / passed;
    log_thousands(number, done);
    log_thousands(speed, (int64_t)rate);
    if (p->all > 0)
        say_live("%s %s, %.0f %%, %s a second, %s left", number, p->unit,
                 100.0 * (double)done / (double)p->all, speed,
                 log_duration(left, (double)(p->all - done) / rate));
    else
        say_live("%s %s, %s a second", number, p->unit, speed);
}

void progress_end(struct progress *p)
{
    if (p->shown > p->started)
        say_live("%s", "");
}

/* The path without links, "." and ".."; its last part need not exist. 0 if its folder does not. */
static int resolve(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char dir[PATH_MAX];
    size_t n = (size_t)(name - path);

    if (realpath(path, out))
        return 1;
    if (n >= sizeof dir)
        return 0;
    memcpy(dir, path, n);
    dir[n] = '\0';
    if (!realpath(n ? dir : ".", out) || strlen(out) + strlen(name) + 2 > PATH_MAX)
        return 0;
    strcat(out, "/");
    strcat(out, name);
    return 1;
}

enum status output_check(const char *out, const char *in, struct err *e)
{
    char a[PATH_MAX], b[PATH_MAX];
    int same = strcmp(out, in) == 0 || (resolve(out, a) && resolve(in, b) && strcmp(a, b) == 0);

    return same ? err_set(e, E_INPUT, "%s: the output is also an input; choose another name", out)
                : OK;
}

enum status output_say(const char *path, struct err *e)
{
    struct tokens t;
    enum status st = tokens_open(&t, path, e);
    char tokens[32], documents[32], vocabulary[32];

    if (st != OK)
        return st;
    say("%s: %s tokens in %s documents, %s, vocabulary %s", path, log_thousands(tokens, t.count),
        log_thousands(documents, t.ndocuments), dtype_name(t.dtype),
        log_thousands(vocabulary, t.vocab_size));
    tokens_close(&t);
    return OK;
}
