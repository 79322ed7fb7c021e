/* usage: agree MODE; ends with the agreed status. tests/parallel/agree.sh counts what is printed.
 */
#include "parallel/agree.h"
#include "base/clock.h"
#include "base/log.h"
#include "parallel/comm_mpi.h"

#include <string.h>

/* OK, or the status of this rank in the mode. Ranks 1 and 2 may not exist: then the last one fails.
 */
static enum status fail(const char *mode, const struct comm *c, struct err *e)
{
    int last = c->size - 1, second = (int)min_i64(1, last);

    if (!strcmp(mode, "one") && c->rank == last)
        return err_set(e, E_FILE, "rank %d cannot read /some/file: it is short", c->rank);
    if (!strcmp(mode, "same") && c->rank >= second)
        return err_set(e, E_FILE, "rank %d has no file", c->rank);
    if (!strcmp(mode, "two") && c->rank == last)
        return err_set(e, E_RESOURCE, "rank %d has no memory", c->rank);
    if (!strcmp(mode, "two") && c->rank == 0)
        return err_set(e, E_FILE, "rank %d has no file", c->rank);
    return OK;
}

int main(int argc, char **argv)
{
    struct comm *world = comm_mpi_start(&argc, &argv), *half;
    const char *mode = argc > 1 ? argv[1] : "none";
    struct err e = { "" };
    enum status st;

    log_speaker(world->rank == 0);
    if (!strcmp(mode, "abort") && world->rank == world->size - 1)
        agree_abort(E_HANG, "rank %d gives up", world->rank);
    if (!strcmp(mode, "die") && world->rank == world->size - 1)
        die(E_PEER, "a peer is gone");
    if (!strcmp(mode, "abort") || !strcmp(mode, "die"))
        clock_sleep(30);
    half = comm_mpi_split(world, world->rank > 0, 0, "half");
    st = fail(mode, world, &e);
    if (!strcmp(mode, "silent")) {
        st = agree_silent(world,
                          world->rank == world->size - 1 ? err_set(&e, E_FILE, "unheard") : OK, &e);
        st = st == E_FILE && !strcmp(e.text, "unheard") ? OK : E_BUG;
    } else if (!strcmp(mode,
                       "group")) { /* the ranks but the first, whose rank 0 is not the speaker */
        st = agree(half,
                   world->rank == world->size - 1 ? err_set(&e, E_FILE, "half of us failed") : OK,
                   &e);
        st = agree_any(world, st != OK) ? E_FILE : OK;
    } else {
        st = agree(world, st, &e);
        if (st != OK && (!e.text[0] || agree_any(world, 0)))
            st = E_BUG;
    }
    comm_mpi_end(world);
    return (int)st;
}
