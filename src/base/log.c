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

/* Name and parent of a process; 0 if the system does not tell. */
static int process_parent(int pid, char name[64])
{
    char path[64], *text, *end;
    int parent = 0;
    size_t n;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (file_read_text(path, 4096, &text, &n, NULL) != OK)
        return 0;
    if (strchr(text, '(') && (end = strrchr(text, ')')) != NULL) {
        *end = 0;
        snprintf(name, 64, "%.63s", strchr(text, '(') + 1);
        sscanf(end + 1, " %*c %d", &parent);
    }
    mem_give(text);
    return parent;
}

/* mpirun hands our lines on through a pipe: what counts is where mpirun itself, a few processes
 * above, writes to. */
static int launcher_on_terminal(void)
{
    static const char *const launchers[] = { "mpi", "hydra", "orte", "prte" };
    char name[64] = "", path[64], target[256];
    int pid = getppid(), found = 0;

    for (int up = 0; up < 4 && pid > 1; up++) {
        int parent = process_parent(pid, name), ours = 0;
        ssize_t n;

        for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
            ours |= strncmp(name, launchers[i], strlen(launchers[i])) == 0;
        if (!ours)
            break;
        snprintf(path, sizeof path, "/proc/%d/fd/1", pid);
        n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        found = strncmp(target, "/dev/pts/", 9) == 0 || strncmp(target, "/dev/tty", 8) == 0;
        pid = parent;
    }
    return found;
}

static int on_terminal(void)
{
    static int known = -1;

    if (known < 0)
        known = isatty(STDOUT_FILENO) || launcher_on_terminal();
    return known;
}

void say_live(const char *fmt, ...)
{
    va_list ap;

    if (!speaks || !on_terminal())
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
