#include "base/file.h"

#include "base/arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every call that changes a disk goes through sys_do: the one place to inject a fault. */
enum sys_kind { SYS_PWRITE, SYS_APPEND, SYS_TRUNCATE, SYS_SYNC, SYS_RENAME, SYS_REMOVE, SYS_MKDIR };

struct sys_op {
    enum sys_kind kind;
    int fd;
    const char *path, *to;
    const void *buf;
    size_t n;
    int64_t at;
};

static int64_t sys_do(const struct sys_op *o)
{
    switch (o->kind) {
    case SYS_PWRITE:
        return pwrite(o->fd, o->buf, o->n, (off_t)o->at);
    case SYS_APPEND:
        return write(o->fd, o->buf, o->n);
    case SYS_TRUNCATE:
        return ftruncate(o->fd, (off_t)o->at);
    case SYS_SYNC:
        return fsync(o->fd);
    case SYS_RENAME:
        return rename(o->path, o->to);
    case SYS_REMOVE:
        return remove(o->path);
    case SYS_MKDIR:
        return mkdir(o->path, 0777);
    }
    errno = EINVAL;
    return -1;
}

static const struct {
    int number;
    const char *text;
} cures[] = {
    { ENOSPC, "free some space or write to another file system" },
    { EDQUOT, "the quota is used up: free some space or write to another file system" },
    { EFBIG, "the file size limit is too small: see ulimit -f" },
    { EMFILE, "too many open files: see ulimit -n" },
    { ENOENT, "check the path" },
    { ENOTDIR, "a part of the path is not a directory" },
    { EACCES, "check the permissions" },
    { EPERM, "check the permissions" },
    { EROFS, "write to another file system" },
    { EEXIST, "remove it or choose another name" },
    { EIO, "the disk or the network failed: look at the system's log" },
    { ESTALE, "the network file system lost the file: try again" },
};

/* Reports errno: "PATH: cannot VERB: reason (cure)". */
static enum status file_fail(struct err *e, const char *path, const char *verb)
{
    int number = errno;
    const char *cure = NULL;

    for (int i = 0; i < COUNT_OF(cures) && !cure; i++)
        if (cures[i].number == number)
            cure = cures[i].text;
    return err_set(e, E_FILE, "%s: cannot %s: %s%s%s%s", path, verb, strerror(number),
                   cure ? " (" : "", cure ? cure : "", cure ? ")" : "");
}

static const int open_flags[] = {
    [FILE_READ] = O_RDONLY | O_NONBLOCK, /* a pipe must not block: it is refused below */
    [FILE_CREATE] = O_RDWR | O_CREAT | O_EXCL,
    [FILE_REPLACE] = O_RDWR | O_CREAT | O_TRUNC,
    [FILE_UPDATE] = O_RDWR,
    [FILE_KEEP] = O_RDWR | O_CREAT,
    [FILE_APPEND] = O_WRONLY | O_CREAT | O_APPEND,
};

/* Over the file size limit a write shall fail with EFBIG, not kill us. */
static void ignore_size_signal(void)
{
    static int done;
    struct sigaction old;

    if (!done && sigaction(SIGXFSZ, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        signal(SIGXFSZ, SIG_IGN);
    done = 1;
}

enum status file_open(struct file *f, const char *path, enum file_mode mode, struct err *e)
{
    struct stat s;

    f->fd = -1;
    f->path[0] = 0;
    if (strlen(path) >= sizeof f->path)
        return err_set(e, E_FILE, "%.60s...: the path is longer than %zu bytes", path,
                       sizeof f->path - 1);
    strcpy(f->path, path);
    ignore_size_signal();
    do
        f->fd = open(path, open_flags[mode] | O_CLOEXEC, 0666);
    while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0)
        return file_fail(e, path, mode == FILE_READ ? "open" : "open for writing");
    if (mode == FILE_READ && (fstat(f->fd, &s) != 0 || !S_ISREG(s.st_mode))) {
        file_close(f, NULL);
        return err_set(e, E_FILE, "%s: cannot open: not a regular file", path);
    }
    return OK;
}

enum status file_read_at(struct file *f, void *buf, size_t n, int64_t at, struct err *e)
{
    size_t done = 0;

    while (done < n) {
        ssize_t k = pread(f->fd, (char *)buf + done, n - done, (off_t)(at + (int64_t)done));

        if (k > 0)
            done += (size_t)k;
        else if (k == 0)
            return err_set(e, E_FILE,
                           "%s: the file ends at byte %lld, bytes %lld to %lld are missing: it is "
                           "truncated",
                           f->path, (long long)file_size(f), (long long)(at + (int64_t)done),
                           (long long)(at + (int64_t)n - 1));
        else if (errno != EINTR)
            return file_fail(e, f->path, "read");
    }
    return OK;
}

/* at < 0: append */
static enum status write_all(struct file *f, const char *buf, size_t n, int64_t at, struct err *e)
{
    struct sys_op o = { .kind = at < 0 ? SYS_APPEND : SYS_PWRITE, .fd = f->fd };
    size_t done = 0;

    while (done < n) {
        int64_t k;

        o.buf = buf + done;
        o.n = n - done;
        o.at = at + (int64_t)done;
        k = sys_do(&o);
        if (k > 0) {
            done += (size_t)k;
        } else if (k == 0 || errno != EINTR) {
            if (k == 0)
                errno = ENOSPC; /* no progress and no reason given */
            return file_fail(e, f->path, "write");
        }
    }
    return OK;
}

enum status file_write_at(struct file *f, const void *buf, size_t n, int64_t at, struct err *e)
{
    BUG_IF(at < 0);
    return write_all(f, buf, n, at, e);
}

enum status file_append(struct file *f, const void *buf, size_t n, struct err *e)
{
    return write_all(f, buf, n, -1, e);
}

enum status file_truncate(struct file *f, int64_t size, struct err *e)
{
    struct sys_op o = { .kind = SYS_TRUNCATE, .fd = f->fd, .at = size };

    while (sys_do(&o) != 0)
        if (errno != EINTR)
            return file_fail(e, f->path, "set the size of the file");
    return OK;
}

enum status file_sync(struct file *f, struct err *e)
{
    struct sys_op o = { .kind = SYS_SYNC, .fd = f->fd };

    while (sys_do(&o) != 0)
        if (errno != EINTR)
            return file_fail(e, f->path, "sync");
    return OK;
}

enum status file_close(struct file *f, struct err *e)
{
    int fd = f->fd;

    f->fd = -1;
    if (fd >= 0 && close(fd) != 0 && errno != EINTR)
        return file_fail(e, f->path, "close");
    return OK;
}

int64_t file_size(struct file *f)
{
    struct stat s;

    return fstat(f->fd, &s) == 0 ? (int64_t)s.st_size : -1;
}

enum status file_map(struct file *f, const void **at, size_t *bytes, struct err *e)
{
    struct stat s;
    void *p;

    *at = "";
    *bytes = 0;
    if (fstat(f->fd, &s) != 0)
        return file_fail(e, f->path, "map");
    if (!S_ISREG(s.st_mode))
        return err_set(e, E_FILE, "%s: cannot map: not a regular file", f->path);
    if (s.st_size == 0)
        return OK;
    p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return file_fail(e, f->path, "map");
    *at = p;
    *bytes = (size_t)s.st_size;
    return OK;
}

void file_unmap(const void *at, size_t bytes)
{
    if (bytes > 0)
        munmap((void *)(uintptr_t)at, bytes);
}

void file_will_need(const void *at, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)at / page * page;

    madvise((void *)begin, (uintptr_t)at + bytes - begin, MADV_WILLNEED); /* advice: may fail */
}

int file_exists(const char *path)
{
    struct stat s;

    return lstat(path, &s) == 0;
}

int file_is_dir(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

enum status file_make_dirs(const char *path, struct err *e)
{
    char part[4096];

    if (strlen(path) >= sizeof part || !path[0])
        return err_set(e, E_FILE, "%.60s...: the path is empty or too long", path);
    strcpy(part, path);
    for (char *p = part + 1;; p++) {
        struct sys_op o = { .kind = SYS_MKDIR, .path = part };
        char c = *p;

        if (c != '/' && c != 0)
            continue;
        *p = 0;
        if (!file_is_dir(part) && sys_do(&o) != 0 && !(errno == EEXIST && file_is_dir(part)))
            return file_fail(e, part, "make this directory");
        *p = c;
        if (!c)
            return OK;
    }
}

enum status file_rename(const char *from, const char *to, struct err *e)
{
    struct sys_op o = { .kind = SYS_RENAME, .path = from, .to = to };
    char verb[4200];

    if (sys_do(&o) == 0)
        return OK;
    snprintf(verb, sizeof verb, "rename to %s", to);
    return file_fail(e, from, verb);
}

enum status file_remove(const char *path, struct err *e)
{
    struct sys_op o = { .kind = SYS_REMOVE, .path = path };

    return sys_do(&o) == 0 || errno == ENOENT ? OK : file_fail(e, path, "remove");
}

static char *path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *p = mem_take(n);

    snprintf(p, n, "%s/%s", dir, name);
    return p;
}

enum status file_remove_tree(const char *path, struct err *e)
{
    struct stat s;
    char **names;
    int n;
    enum status st = OK;

    if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode))
        return file_remove(path, e);
    if ((st = file_list(path, &names, &n, e)) != OK)
        return st;
    for (int i = 0; i < n && st == OK; i++) {
        char *child = path_join(path, names[i]);

        st = file_remove_tree(child, e);
        mem_give(child);
    }
    mem_give(names);
    return st == OK ? file_remove(path, e) : st;
}

enum status file_sync_dir(const char *path, struct err *e)
{
    struct sys_op o = { .kind = SYS_SYNC };
    enum status st = OK;

    o.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o.fd < 0)
        return file_fail(e, path, "open the directory");
    while (st == OK && sys_do(&o) != 0) {
        if (errno == EINVAL || errno == ENOTSUP)
            break; /* some network file systems have no sync of directories */
        if (errno != EINTR)
            st = file_fail(e, path, "sync the directory");
    }
    close(o.fd);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of dir one after the other, each with its 0. Returns how many, -1 with errno set. */
static int read_names(const char *dir, char **text, size_t *used)
{
    size_t room = 0;
    int n = 0;
    DIR *d = opendir(dir);
    struct dirent *t;

    if (!d)
        return -1;
    for (errno = 0; (t = readdir(d)); errno = 0) {
        size_t k = strlen(t->d_name) + 1;

        if (strcmp(t->d_name, ".") == 0 || strcmp(t->d_name, "..") == 0)
            continue;
        if (*used + k > room) {
            *text = mem_grow(*text, room, 2 * room + k + 1024);
            room = 2 * room + k + 1024;
        }
        memcpy(*text + *used, t->d_name, k);
        *used += k;
        n++;
    }
    if (errno)
        n = -1;
    closedir(d);
    return n;
}

enum status file_list(const char *dir, char ***names, int *n, struct err *e)
{
    char *text = NULL, *p;
    size_t used = 0;
    int count = read_names(dir, &text, &used);

    *names = NULL;
    *n = 0;
    if (count < 0) {
        enum status st = file_fail(e, dir, "list");

        mem_give(text);
        return st;
    }
    *names = mem_take((size_t)count * sizeof **names + used);
    p = (char *)(*names + count);
    if (used)
        memcpy(p, text, used);
    mem_give(text);
    for (int i = 0; i < count; i++, p += strlen(p) + 1)
        (*names)[i] = p;
    qsort(*names, (size_t)count, sizeof **names, by_name);
    *n = count;
    return OK;
}

/* All of an open file: the size is not believed, files of /proc say 0. */
static enum status read_rest(struct file *f, size_t max, char **text, size_t *n, struct err *e)
{
    int64_t size = file_size(f);
    size_t room = size > 0 && (uint64_t)size < max ? (size_t)size + 2 : 4096, used = 0;
    char *p = mem_take(room);

    while (used <= max) {
        ssize_t k = pread(f->fd, p + used, room - 1 - used, (off_t)used);

        if (k == 0) {
            *text = p;
            *n = used;
            return OK;
        }
        if (k < 0 && errno != EINTR) {
            mem_give(p);
            return file_fail(e, f->path, "read");
        }
        used += k > 0 ? (size_t)k : 0;
        if (used == room - 1) {
            p = mem_grow(p, room, 2 * room);
            room *= 2;
        }
    }
    mem_give(p);
    return err_set(e, E_FILE, "%s: the file has more than %zu bytes, at most these are expected",
                   f->path, max);
}

enum status file_read_text(const char *path, size_t max, char **text, size_t *n, struct err *e)
{
    struct file f;
    size_t size = 0;
    enum status st = file_open(&f, path, FILE_READ, e);

    *text = NULL;
    if (st == OK)
        st = read_rest(&f, max, text, &size, e);
    file_close(&f, NULL);
    if (n)
        *n = size;
    return st;
}

enum status file_sync_parent(const char *path, struct err *e)
{
    char *dir = mem_copy_text(path), *slash = strrchr(dir, '/');
    enum status st;

    if (slash)
        slash[slash == dir] = 0;
    st = file_sync_dir(slash ? dir : ".", e);
    mem_give(dir);
    return st;
}

enum status file_write_by(const char *beside, const char *path, const void *buf, size_t n,
                          struct err *e)
{
    struct file f;
    enum status st = file_open(&f, beside, FILE_REPLACE, e), closed;

    if (st == OK && (st = file_write_at(&f, buf, n, 0, e)) == OK)
        st = file_sync(&f, e);
    closed = file_close(&f, e);
    st = st == OK ? closed : st;
    if (st == OK && (st = file_rename(beside, path, e)) == OK)
        return file_sync_parent(path, e);
    file_remove(beside, NULL);
    return st;
}

enum status file_write_whole(const char *path, const void *buf, size_t n, struct err *e)
{
    size_t room = strlen(path) + 32;
    char *beside = mem_take(room);
    enum status st;

    snprintf(beside, room, "%s.tmp-%ld", path, (long)getpid());
    st = file_write_by(beside, path, buf, n, e);
    mem_give(beside);
    return st;
}
