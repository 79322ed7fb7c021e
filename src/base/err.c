#include "base/err.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/trace.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static die_hook *hook_fn;
static char mark_path[4096]; /* written by die() */
static int hook_rank = -1;   /* -1: a tool, or too early to know */

enum status err_set(struct err *e, enum status st, const char *fmt, ...)
{
    va_list ap;

    if (!e || e->text[0])
        return st;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return st;
}

void err_prefix(struct err *e, const char *fmt, ...)
{
    char head[1024];
    size_t n, room, old;
    va_list ap;

    if (!e)
        return;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head - 2, fmt, ap);
    va_end(ap);
    strcat(head, ": ");
    n = strlen(head);
    room = sizeof e->text - 1 - n;
    old = strlen(e->text);
    if (old > room)
        old = room;
    memmove(e->text + n, e->text, old);
    memcpy(e->text, head, n);
    e->text[n + old] = 0;
}

void die_set_hook(die_hook *hook, int rank)
{
    hook_fn = hook;
    hook_rank = rank;
}

void die_set_mark(const char *path)
{
    snprintf(mark_path, sizeof mark_path, "%s", path ? path : "");
}

/* One write, so that lines of several ranks do not mix. */
static void die_say(enum status code, const char *fmt, va_list ap)
{
    char line[4096], mark[4200];
    size_t n = sizeof line - 1;
    int len = hook_rank < 0 ? snprintf(line, n, "pretrain: ")
                            : snprintf(line, n, "pretrain: rank %d: ", hook_rank);

    vsnprintf(line + len, n - (size_t)len, fmt, ap);
    n = strlen(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0)
        n = 0; /* nobody is left to tell */
    if (mark_path[0]) {
        int m = snprintf(mark, sizeof mark, "code %d\n%.*s", (int)code, (int)n, line);
        file_write_whole(mark_path, mark, (size_t)m, NULL);
    }
}

void die(enum status code, const char *fmt, ...)
{
    static atomic_flag dying = ATOMIC_FLAG_INIT;
    va_list ap;

    while (atomic_flag_test_and_set(&dying))
        clock_sleep(1); /* another thread ends the process */
    va_start(ap, fmt);
    die_say(code, fmt, ap);
    va_end(ap);
    trace_print(16);
    if (hook_fn)
        hook_fn((int)code);
    _exit((int)code);
}
