/* All file I/O of the program. Every function loops over short transfers and EINTR and reports
 * path and reason. E_FILE unless said otherwise. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include "base/err.h"

enum file_mode {
    FILE_READ,   /* regular files only */
    FILE_CREATE, /* must not exist     */
    FILE_REPLACE,
    FILE_UPDATE,
    FILE_KEEP, /* made if absent     */
    FILE_APPEND
};

struct file {
    int fd; /* -1: closed */
    char path[4096];
};

enum status file_open(struct file *f, const char *path, enum file_mode mode, struct err *e) LOCAL;
/* The end of the file is an error. */
enum status file_read_at(struct file *f, void *buf, size_t n, int64_t at, struct err *e) LOCAL;
enum status file_write_at(struct file *f, const void *buf, size_t n, int64_t at,
                          struct err *e) LOCAL;
enum status file_append(struct file *f, const void *buf, size_t n, struct err *e) LOCAL;
enum status file_truncate(struct file *f, int64_t size, struct err *e) LOCAL;
enum status file_sync(struct file *f, struct err *e) LOCAL;
/* Until it is closed no other process locks this file; one that has it now: E_FILE. */
enum status file_lock(struct file *f, struct err *e) LOCAL;
enum status file_close(struct file *f, struct err *e) LOCAL; /* a closed file is fine */
int64_t file_size(struct file *f) LOCAL;                     /* -1 on failure */
/* Up to n bytes from where the last call ended, 0 at the end; also of a pipe. */
enum status file_read_next(struct file *f, void *buf, size_t n, size_t *got, struct err *e) LOCAL;
enum status file_seek(struct file *f, int64_t at, struct err *e) LOCAL; /* for the next call */
/* Standard input as a file to read, named "standard input". */
void file_of_stdin(struct file *f) LOCAL;
/* Nanoseconds since 1970 of the last change, 0 on failure. */
int64_t file_changed(struct file *f) LOCAL;
/* Read-only, the whole file. */
enum status file_map(struct file *f, const void **at, size_t *bytes, struct err *e) LOCAL;
void file_unmap(const void *at, size_t bytes) LOCAL;
/* Part of a mapped file will be read soon: the system may fetch it now, and we do not wait. */
void file_will_need(const void *at, size_t bytes) LOCAL;

int file_exists(const char *path) LOCAL;
int file_is_dir(const char *path) LOCAL;
enum status file_make_dirs(const char *path, struct err *e) LOCAL; /* like mkdir -p */
enum status file_rename(const char *from, const char *to, struct err *e) LOCAL;
enum status file_remove(const char *path, struct err *e) LOCAL; /* absent is fine */
enum status file_remove_tree(const char *path, struct err *e) LOCAL;
enum status file_sync_dir(const char *path, struct err *e) LOCAL;
/* Sorted names in dir (no "." and ".."); *names from mem_take, one block, free with mem_give. */
enum status file_list(const char *dir, char ***names, int *n, struct err *e) LOCAL;
/* Whole file as text with a final 0; *text from mem_take. Larger than max bytes: E_FILE. */
enum status file_read_text(const char *path, size_t max, char **text, size_t *n,
                           struct err *e) LOCAL;
enum status file_sync_parent(const char *path, struct err *e) LOCAL; /* the folder it is in */
/* Write beside, sync, rename over; the name beside is the caller's or has the process's number. */
enum status file_write_by(const char *beside, const char *path, const void *buf, size_t n,
                          struct err *e) LOCAL;
enum status file_write_whole(const char *path, const void *buf, size_t n, struct err *e) LOCAL;
#endif
