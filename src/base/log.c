#include "base/log.h"

#include "base/arena.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *program = "pretrain";
static int speaks = 1;
static int live; /* a live line is on the terminal */
static struct file log_file = { .fd = -1 };
static char early[16384]; /* lines for the log file before it is there; what is too much is lost */
static size_t early_bytes;
static int log_opened;

void log_program(const char *name)
{
    program = name;
}

void log_speaker(int yes)
{
    speaks = yes;
}

enum status log_open(const char *path, struct err *e)
{
    enum status st = file_close(&log_file, e);

    if (st == OK && path)
        st = file_open(&log_file, path, FILE_APPEND, e);
    if (st == OK && path && !log_opened) {
        log_opened = 1;
        st = file_append(&log_file, early, early_bytes, e);
    }
    return st;
}

static void live_clear(void)
{
    if (live)
        fputs("\r\033[K", stdout);
    live = 0;
}

/* A full disk must not end a run: the log file is given up with one warning. */
static void log_keep(const char *line, size_t n)
{
    struct err e = { "" };

    if (!log_opened && n <= sizeof early - early_bytes) {
        memcpy(early + early_bytes, line, n);
        early_bytes += n;
    }
    if (log_file.fd < 0 || file_append(&log_file, line, n, &e) == OK)
        return;
    file_close(&log_file, NULL);
    fprintf(stderr, "warning: no more lines go to the log file: %s\n", e.text);
}

/* head, text, newline: to f and to the log file. */
static void log_line(FILE *f, const char *head, const char *fmt, va_list ap)
{
    char small[2048], *line = small;
    size_t h = strlen(head), n;
    va_list again;

    if (!speaks)
        return;
    va_copy(again, ap);
    n = h + (size_t)vsnprintf(small, 1, fmt, again);
    va_end(again);
    if (n + 2 > sizeof small)
        line = mem_take(n + 2);
    memcpy(line, head, h);
    vsnprintf(line + h, n - h + 1, fmt, ap);
    line[n++] = '\n';
    live_clear();
    fflush(stdout);
    fwrite(line, 1, n, f);
    fflush(f);
    log_keep(line, n);
    if (line != small)
        mem_give(line);
}

void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(stdout, "", fmt, ap);
    va_end(ap);
}

void say_live(const char *fmt, ...)
{
    va_list ap;

    if (!speaks || !isatty(STDOUT_FILENO))
        return;
    live_clear();
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    fflush(stdout);
    live = 1;
}

void warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_line(stderr, "warning: ", fmt, ap);
    va_end(ap);
}

void complain(const char *fmt, ...)
{
    char head[64];
    va_list ap;

    snprintf(head, sizeof head, "%s: ", program);
    va_start(ap, fmt);
    log_line(stderr, head, fmt, ap);
    va_end(ap);
}

const char *log_thousands(char *buf, int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n < 0 ? -(uint64_t)n : (uint64_t)n);
    char *p = buf;

    if (n < 0)
        *p++ = '-';
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = 0;
    return buf;
}

const char *log_duration(char *buf, double seconds)
{
    int64_t s = seconds > 0 && seconds < 1e12 ? (int64_t)(seconds + 0.5) : 0;
    int hours = (int)(s / 3600 % 24), minutes = (int)(s / 60 % 60), rest = (int)(s % 60);

    if (!(seconds < 1e12))
        snprintf(buf, 32, "?");
    else if (s >= 86400)
        snprintf(buf, 32, "%" PRId64 " d %02d:%02d", s / 86400, hours, minutes);
    else if (s >= 3600)
        snprintf(buf, 32, "%d:%02d:%02d", hours, minutes, rest);
    else
        snprintf(buf, 32, "%d:%02d", minutes, rest);
    return buf;
}
