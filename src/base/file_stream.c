#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail(struct err *e, const char *path, const char *verb)
{
    return err_set(e, E_FILE, "%s: cannot %s: %s", path, verb, strerror(errno));
}

enum status file_read_next(struct file *f, void *buf, size_t n, size_t *got, struct err *e)
{
    ssize_t k;

    do
        k = read(f->fd, buf, n);
    while (k < 0 && errno == EINTR);
    *got = k > 0 ? (size_t)k : 0;
    return k < 0 ? fail(e, f->path, "read") : OK;
}

enum status file_seek(struct file *f, int64_t at, struct err *e)
{
    return lseek(f->fd, (off_t)at, SEEK_SET) < 0 ? fail(e, f->path, "seek in it") : OK;
}

void file_of_stdin(struct file *f)
{
    f->fd = STDIN_FILENO;
    strcpy(f->path, "standard input");
}

enum status file_lock(struct file *f, struct err *e)
{
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return err_set(e, E_FILE, "%s: another process is writing it; wait for it", f->path);
    return OK; /* some file systems have no locks */
}

int64_t file_changed(struct file *f)
{
    struct stat s;

    return fstat(f->fd, &s) == 0 ? (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec : 0;
}
