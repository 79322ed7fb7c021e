/* A list of records that grows beside a file in the making: in memory while it is short. */
#ifndef DATA_SPOOL_H
#define DATA_SPOOL_H
#include "base/file.h"

struct spool;

/* keep: bytes of an earlier process's list at path to go on with (E_FILE: it has fewer); 0: anew.
 */
enum status spool_open(struct spool **s, const char *path, int64_t keep, struct err *e) LOCAL;
enum status spool_add(struct spool *s, const void *p, size_t n, struct err *e) LOCAL;
int64_t spool_bytes(const struct spool *s) LOCAL; /* so far */
/* All of it is on disk. */
enum status spool_sync(struct spool *s, struct err *e) LOCAL;
enum status spool_read(struct spool *s, void *to, size_t n, int64_t at, struct err *e) LOCAL;
/* All of it, to a place in another file. */
enum status spool_copy(struct spool *s, struct file *to, int64_t at, struct err *e) LOCAL;
void spool_close(struct spool *s, int remove) LOCAL; /* NULL is fine */
#endif
