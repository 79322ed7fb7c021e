#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "parallel/agree.h"
#include "train/run.h"

struct path {
    char text[CONFIG_TEXT + 64];
};

static struct path in_directory(const struct run *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static struct path in_directory(const struct run *r, const char *fmt, ...)
{
    struct path p;
    va_list args;
    int n = snprintf(p.text, sizeof p.text, "%s/", r->c->run.directory);

    va_start(args, fmt);
    vsnprintf(p.text + n, sizeof p.text - (size_t)n, fmt, args);
    va_end(args);
    return p;
}

void directory_mark(const struct run *r, const char *name, const char *fmt, ...)
{
    struct path p = in_directory(r, "%s", name);
    struct err e = { "" };
    char text[4400];
    va_list args;
    int n;

    if (r->g.rank != 0)
        return;
    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (file_write_whole(p.text, text, (size_t)min_i64(n, (int64_t)sizeof text - 1), &e) != OK)
        warn("%s", e.text);
}

/* input.nml of earlier attempts become input.1.nml, input.2.nml...; the attempt's number is how
 * many there are. */
static enum status keep_old_input(struct run *r, struct err *e)
{
    struct path now = in_directory(r, "input.nml"), old;

    r->attempt = 0;
    if (!file_exists(now.text))
        return OK;
    do
        old = in_directory(r, "input.%" PRId64 ".nml", ++r->attempt);
    while (file_exists(old.text));
    return file_rename(now.text, old.text, e);
}

static enum status open_files(struct run *r, struct err *e)
{
    enum status st;
    static const char *const marks[] = { "RUN_COMPLETE", "RUN_FAILED", "STOP" };

    if ((st = file_make_dirs(r->c->run.directory, e)) != OK)
        return st;
    for (int i = 0; i < COUNT_OF(marks); i++)
        if ((st = file_remove(in_directory(r, "%s", marks[i]).text, e)) != OK)
            return st;
    if ((st = keep_old_input(r, e)) != OK)
        return st;
    st = file_write_whole(in_directory(r, "input.nml").text, r->input_nml, strlen(r->input_nml), e);
    if (st == OK)
        st = log_open(in_directory(r, "log.txt").text, e);
    if (st == OK)
        st = metrics_open(&r->metrics, in_directory(r, "metrics.jsonl").text, e);
    return st;
}

enum status directory_open(struct run *r, struct err *e)
{
    enum status st = OK;

    if (r->g.rank == 0)
        st = open_files(r, e);
    st = agree(r->g.world, st, e);
    comm_bytes_from(r->g.world, &r->attempt, sizeof r->attempt, 0);
    if (st == OK)
        die_set_mark(in_directory(r, "RUN_FAILED").text);
    return st;
}
