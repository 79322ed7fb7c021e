/* A local failure: a status and the one line that the user will read. Printed by nobody but
 * agree() or main. */
#ifndef BASE_ERR_H
#define BASE_ERR_H
#include "base/types.h"

struct err {
    char text[4096]; /* no trailing newline; names file, place and cure */
};

/* Store the message (the first one wins: later calls keep it) and return st. e may be NULL. */
enum status err_set(struct err *e, enum status st, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 3, 4)));
/* Put "prefix: " before the stored message. */
void err_prefix(struct err *e, const char *fmt, ...) LOCAL __attribute__((format(printf, 2, 3)));

/* What cannot be agreed on: one line, the last actions of the recorder, then the hook
 * (MPI_Abort), then _exit. */
__attribute__((noreturn)) void die(enum status code, const char *fmt, ...) LOCAL
    __attribute__((format(printf, 2, 3)));
typedef void die_hook(int code);
void die_set_hook(die_hook *hook, int rank) LOCAL; /* hook ends all ranks; rank is printed */
/* From now on die() also writes its code and line to this file (a run's RUN_FAILED); NULL: no more.
 */
void die_set_mark(const char *path) LOCAL;
#define BUG_IF(cond)                                                              \
    do {                                                                          \
        if (cond)                                                                 \
            die(E_BUG, "%s:%d: broken invariant: %s", __FILE__, __LINE__, #cond); \
    } while (0)
#endif
