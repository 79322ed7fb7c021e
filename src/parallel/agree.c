#include "parallel/agree.h"

#include "base/log.h"
#include "parallel/comm_mpi_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The worst status in the high half, then the lowest rank: the maximum of both in one number. */
enum status agree_silent(struct comm *c, enum status mine, struct err *e)
{
    int64_t worst = (int64_t)mine << 32 | (INT32_MAX - c->rank);
    struct err spare = { "" };
    int speaker;

    comm_max_i64(c, &worst, 1);
    speaker = INT32_MAX - (int)(worst & INT32_MAX);
    if (worst >> 32 != OK)
        comm_bytes_from(c, (e ? e : &spare)->text, sizeof spare.text, speaker);
    return (enum status)(worst >> 32);
}

/* The text is everywhere by now. The first rank of c prints it: in the world that is the one with
 * the log file. */
enum status agree(struct comm *c, enum status mine, struct err *e)
{
    struct err own = { "" };
    enum status st = agree_silent(c, mine, e ? e : &own);
    int world_rank = 0;

    if (st == OK || c->rank != 0)
        return st;
    if (!e)
        e = &own;
    MPI_OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    if (world_rank == 0)
        complain("%s", e->text);
    else /* a group without the speaker */
        fprintf(stderr, "pretrain: %s\n", e->text);
    return st;
}

int agree_any(struct comm *c, int flag)
{
    int64_t any = flag != 0;

    comm_max_i64(c, &any, 1);
    return any != 0;
}

void agree_abort(enum status code, const char *fmt, ...)
{
    char line[4096] = "pretrain: ";
    size_t n = strlen(line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
    va_end(ap);
    n = strlen(line);
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0)
        n = 0; /* nobody reads: the exit code still says it */
    comm_mpi_abort((int)code);
}
