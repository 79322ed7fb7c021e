#include "parallel/comm_mpi.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "parallel/comm_mpi_impl.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Idle rounds of a wait loop before it sleeps. A yield costs a microsecond alone, a whole time
 * slice in a crowd. */
enum { YIELDS_ALONE = 1000, YIELDS_CROWDED = 20 };
#define NAP_FIRST 20e-6
#define NAP_LAST  1e-3

/* ---- errors, the end ---- */

void comm_mpi_check(int rc, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;

    if (rc == MPI_SUCCESS)
        return;
    if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", rc);
    die(E_PEER, "MPI failed: %.*s: %s", (int)strcspn(call, "("), call, text);
}

static volatile sig_atomic_t abort_code;

static void abort_late(int sig)
{
    (void)sig;
    _exit((int)abort_code);
}

void comm_mpi_abort(int code)
{
    struct sigaction late = { .sa_handler = abort_late };
    sigset_t alarms;

    abort_code = code;
    sigaction(SIGALRM, &late, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(2);
    clock_sleep(0.3); /* a launcher that kills at once may lose the last lines */
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

static void abort_hook(int code)
{
    comm_mpi_abort(code);
}

/* ---- waiting ---- */

/* Seconds to sleep after `late` rounds beyond the yields: about an eighth of the time waited so
 * far. */
static double nap_of(int late)
{
    double nap = NAP_FIRST;

    for (; late >= 8 && nap < NAP_LAST; late -= 8)
        nap *= 2;
    return nap < NAP_LAST ? nap : NAP_LAST;
}

void comm_mpi_pause(const struct mpi_engine *g, struct mpi_pause *p, int moved)
{
    p->idle = moved ? 0 : p->idle + 1;
    if (p->idle <= g->yields)
        sched_yield();
    else
        clock_sleep(nap_of(p->idle - g->yields));
}

/* ---- communicators ---- */

static struct comm *comm_build(struct mpi_engine *g, int size, int rank, int group,
                               const char *name)
{
    struct mpi_comm *m = mem_take(sizeof *m);

    *m = (struct mpi_comm){
        .self = { .rank = rank, .size = size, .name = name, .ops = &comm_mpi_ops, .impl = m },
        .engine = g,
        .group = group,
        .next = g->first,
    };
    g->first = m;
    m->world_rank = mem_take((size_t)size * sizeof *m->world_rank);
    if (size == 1)
        return &m->self;
    if (group >= g->groups_max)
        die(E_BUG, "more than %d communicators", g->groups_max);
    m->to = mem_take(2 * (size_t)size * sizeof *m->to);
    m->from = m->to + size;
    m->slots = mem_take((RING_SLOTS + 1) * (size_t)SUM_BYTES);
    m->sums = m->slots + (size_t)RING_SLOTS * SUM_BYTES;
    return &m->self;
}

struct wish {
    int color, key, groups, rank;
};

static int wish_order(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;

    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->rank - y->rank;
}

/* Ranks that are together in two groups were together in both splits, so the later number is
 * larger. */
struct comm *comm_mpi_split(struct comm *parent, int color, int key, const char *name)
{
    struct mpi_comm *p = parent->impl;
    struct mpi_engine *g = p->engine;
    struct wish mine = { color, key, g->groups, parent->rank };
    struct wish *all = mem_take((size_t)parent->size * sizeof *all);
    struct comm *c = NULL;
    int size = 0, rank = 0;

    comm_bytes_all(parent, &mine, all, sizeof mine);
    for (int i = 0; i < parent->size; i++) {
        g->groups = (int)max_i64(g->groups, all[i].groups);
        if (all[i].color == color)
            all[size++] = all[i];
    }
    g->groups++;
    if (color >= 0) {
        qsort(all, (size_t)size, sizeof *all, wish_order);
        while (all[rank].rank != parent->rank)
            rank++;
        c = comm_build(g, size, rank, g->groups - 1, name);
        for (int i = 0; i < size; i++)
            ((struct mpi_comm *)c->impl)->world_rank[i] = p->world_rank[all[i].rank];
    }
    mem_give(all);
    return c;
}

/* One kernel and one name: the same node. MPI_Comm_split_type would block inside MPI, half a second
 * for eight ranks on two cores. */
struct comm *comm_mpi_split_node(struct comm *parent, const char *name)
{
    struct {
        char host[MPI_MAX_PROCESSOR_NAME], boot[64];
    } mine, *all;
    struct err e = { "" };
    char *boot = NULL;
    size_t length;
    int n, first = 0;

    memset(&mine, 0, sizeof mine);
    MPI_OK(MPI_Get_processor_name(mine.host, &n));
    if (file_read_text("/proc/sys/kernel/random/boot_id", sizeof mine.boot - 1, &boot, &length,
                       &e) == OK)
        strncpy(mine.boot, boot, sizeof mine.boot - 1);
    mem_give(boot);
    all = mem_take((size_t)parent->size * sizeof *all);
    comm_bytes_all(parent, &mine, all, sizeof mine);
    while (memcmp(&all[first], &mine, sizeof mine) != 0)
        first++;
    mem_give(all);
    return comm_mpi_split(parent, first, parent->rank, name);
}

void comm_mpi_free(struct comm *c)
{
    struct mpi_comm *m, **link;
    struct op *o;

    if (!c)
        return;
    m = c->impl;
    BUG_IF(m->op_first || m->p2p_first);
    for (link = &m->engine->first; *link != m; link = &(*link)->next)
        ;
    *link = m->next;
    while ((o = m->spare)) {
        m->spare = o->next;
        mem_give(o);
    }
    mem_give(m->world_rank);
    mem_give(m->to);
    mem_give(m->slots);
    mem_give(m);
}

void comm_mpi_crowd(struct comm *world, int ranks_outnumber_cores)
{
    struct mpi_comm *m = world->impl;

    m->engine->yields = ranks_outnumber_cores ? YIELDS_CROWDED : YIELDS_ALONE;
}

static int request_pending(MPI_Request *r)
{
    int done;

    MPI_OK(MPI_Test(r, &done, MPI_STATUS_IGNORE));
    return !done;
}

int comm_mpi_launched(void)
{
    static const char *const names[] = { "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE",
                                         "MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS" };

    for (int i = 0; i < COUNT_OF(names); i++)
        if (getenv(names[i]))
            return 1;
    return 0;
}

struct comm *comm_mpi_start(int *argc, char ***argv)
{
    struct mpi_engine *g = mem_take(sizeof *g);
    struct mpi_pause pause = { 0 };
    struct comm *world;
    MPI_Request r;
    int rank, size, level, *tag_limit, found;

    MPI_OK(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    die_set_hook(abort_hook, rank);
    g->yields = YIELDS_CROWDED;
    if (level < MPI_THREAD_FUNNELED)
        die(E_PEER,
            "this MPI library is not built for programs with threads (MPI_THREAD_FUNNELED)");
    MPI_OK(MPI_Comm_idup(MPI_COMM_WORLD, &g->mpi, &r));
    while (request_pending(&r))
        comm_mpi_pause(g, &pause, 0);
    MPI_OK(MPI_Comm_set_errhandler(g->mpi, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &found));
    g->groups_max = (found ? *tag_limit : 32767) / TAGS_EACH;
    g->groups = 1;
    world = comm_build(g, size, rank, 0, "world");
    for (int i = 0; i < size; i++)
        ((struct mpi_comm *)world->impl)->world_rank[i] = i;
    return world;
}

void comm_mpi_end(struct comm *world)
{
    struct mpi_engine *g = ((struct mpi_comm *)world->impl)->engine;

    comm_barrier(world);
    while (g->first) /* the world is the oldest: last */
        comm_mpi_free(&g->first->self);
    MPI_OK(MPI_Comm_free(&g->mpi));
    mem_give(g);
    die_set_hook(NULL, -1);
    MPI_Finalize();
}

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\n..." */
const char *comm_mpi_version(void)
{
    static char text[128];
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "", number[64];
    int n;

    if (MPI_Get_library_version(all, &n) != MPI_SUCCESS)
        return "MPI";
    if (sscanf(all, "MPICH Version: %63s", number) == 1)
        snprintf(text, sizeof text, "MPICH %s", number);
    else if (sscanf(all, "Open MPI v%63[^, ]", number) == 1)
        snprintf(text, sizeof text, "Open MPI %s", number);
    else
        snprintf(text, sizeof text, "%.*s", (int)strcspn(all, "\r\n"), all);
    return text;
}
