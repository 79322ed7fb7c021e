/* Results on their way: a folder OUT.parts, where every replica writes what it has done as records
 * into a file of its own. A run that was ended early goes on with them, under any layout; at the
 * end they become OUT in the order of the units. */
#ifndef INFER_PARTS_H
#define INFER_PARTS_H
#include "base/file.h"
#include "base/hash.h"
#include "parallel/comm.h"

struct part_record {
    int file; /* -1: not done */
    int64_t at, bytes;
};
struct parts {
    struct comm *world;
    char folder[4096];
    int64_t units, ndone, attempt;
    uint8_t *done;            /* [units] before this run, the same everywhere */
    struct file f;            /* this replica's */
    int64_t at;               /* its size */
    struct hash_stream *hash; /* of the record that is being written */
    /* rank 0, from parts_collect on */
    struct part_record *record; /* [units] */
    struct file *files;
    int nfiles;
};

/* job: what the results depend on; a folder of another job is refused. out [same]. */
enum status parts_open(struct parts *p, struct comm *world, const char *out, const char *job,
                       int64_t units, struct err *e) COLL(world);
void parts_close(struct parts *p) LOCAL;
/* One rank of a replica: a record of `bytes` bytes, in pieces. */
enum status parts_begin(struct parts *p, int64_t unit, int64_t bytes, struct err *e) LOCAL;
enum status parts_put(struct parts *p, const void *data, int64_t bytes, struct err *e) LOCAL;
enum status parts_end(struct parts *p, struct err *e) LOCAL;
/* All units are done: rank 0 can read them. */
enum status parts_collect(struct parts *p, struct err *e) COLL(world);
enum status parts_read(struct parts *p, int64_t unit, int64_t at, void *data, int64_t bytes,
                       struct err *e) LOCAL;
int64_t parts_bytes(const struct parts *p, int64_t unit) LOCAL;
/* After a failure: rank 0 removes the folder if nothing is in it. */
void parts_give_up(struct parts *p) LOCAL;
enum status parts_remove(struct parts *p, struct err *e) LOCAL; /* rank 0 */
#endif
