/* One voice for one error. */
#ifndef PARALLEL_AGREE_H
#define PARALLEL_AGREE_H
#include "parallel/comm.h"

/* Every rank brings its own status; all return the worst (largest). The text of the lowest rank
 * that has it becomes e->text of all and is printed once, by rank 0 of c (complain(); on stderr if
 * that is not rank 0 of the world). One all-reduce when all are OK. */
enum status agree(struct comm *c, enum status mine, struct err *e) COLL(c);
/* The same without printing: the caller speaks. */
enum status agree_silent(struct comm *c, enum status mine, struct err *e) COLL(c);
/* 1 on all ranks if flag is set on any. */
int agree_any(struct comm *c, int flag) COLL(c);
/* Ends the job on all ranks with one line; MPI_Abort is its only MPI call, _exit after 2 s. */
_Noreturn void agree_abort(enum status code, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 2, 3)));
#endif
