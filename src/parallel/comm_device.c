#include "parallel/comm_device.h"

#include "base/arena.h"
#include "parallel/agree.h"

#include <stdio.h>
#include <string.h>

/* What this build has; NULL: it has not. */
static const struct {
    enum status (*staged)(struct comm **c, struct comm *host, int tags, struct err *e);
    void (*staged_free)(struct comm *c);
    enum status (*nccl)(struct comm **c, struct comm *host, int tags, int deterministic,
                        struct err *e);
    void (*nccl_free)(struct comm *c);
    const char *(*nccl_version)(void);
} built = {
#ifdef HAVE_CUDA
    .staged = comm_staged_create,
    .staged_free = comm_staged_free,
#ifdef HAVE_NCCL
    .nccl = comm_nccl_create,
    .nccl_free = comm_nccl_free,
    .nccl_version = comm_nccl_version,
#endif
#else
    .staged = NULL,
#endif
};

/* Communicators of one name. Whether two ranks of one share a device is asked of all of them, so
 * that a run's are alike. */
struct kind {
    struct comm **at;
    int tags; /* of the pipeline: forward, backward */
    const char *name;
    int a, b; /* ranks that share a device; -1: none do */
    char uuid[48];
};

struct card { /* of a rank */
    unsigned char id[COMM_DEVICE_ID];
    int node, rank; /* node: its first rank */
};

static int cards_equal(const struct card *a, const struct card *b)
{
    return a->node == b->node && memcmp(a->id, b->id, sizeof a->id) == 0;
}

static void name_device(char *text, const unsigned char *id)
{
    text += sprintf(text, "GPU");
    for (int i = 0; i < COMM_DEVICE_ID; i++)
        text += sprintf(text, "%s%02x", i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                        (unsigned)id[i]);
}

/* The first pair of all ranks, as one number that is the larger the earlier it comes. */
static int64_t first_pair(const struct comm *c, const struct card *all, int ranks)
{
    int64_t most = 0;

    for (int i = 0; i < c->size; i++)
        for (int k = i + 1; k < c->size; k++)
            if (cards_equal(&all[i], &all[k]))
                most = max_i64(most,
                               (int64_t)(ranks - all[i].rank) * (ranks + 1) + ranks - all[k].rank);
    return most;
}

static void find_pair(struct grid *g, struct kind *k, const struct card *mine)
{
    struct comm *c = *k->at;
    int64_t pair = 0;

    k->a = k->b = -1;
    if (c) {
        struct card *all = mem_take((size_t)c->size * sizeof *all);
        comm_bytes_all(c, mine, all, sizeof *mine);
        pair = first_pair(c, all, g->ranks);
        mem_give(all);
    }
    comm_max_i64(g->world, &pair, 1);
    if (pair == 0)
        return;
    k->a = g->ranks - (int)(pair / (g->ranks + 1));
    k->b = g->ranks - (int)(pair % (g->ranks + 1));
    name_device(k->uuid, mine->id);
    comm_bytes_from(g->world, k->uuid, sizeof k->uuid, k->a);
}

static enum status check_choice(const struct kind *kinds, int n, enum comm_choice how,
                                struct err *e)
{
    if (!built.staged)
        return err_set(e, E_BUG, "no communication with devices is built in");
    if (how != COMM_CHOICE_NCCL)
        return OK;
    if (!built.nccl)
        return err_set(e, E_RESOURCE,
                       "debug.communication = 'nccl', but this build has no NCCL: set it to 'auto' "
                       "or 'mpi', or configure the program where nccl.h and libnccl are found");
    for (int i = 0; i < n; i++)
        if (kinds[i].a >= 0)
            return err_set(e, E_RESOURCE,
                           "debug.communication = 'nccl', but ranks %d and %d share %s, and NCCL "
                           "wants a GPU for each rank: start as many ranks on a node as it has "
                           "GPUs, or set it to 'auto' or 'mpi'",
                           kinds[i].a, kinds[i].b, kinds[i].uuid);
    return OK;
}

static enum status wrap(struct comm_device *d, const struct kind *k, int nccl, int deterministic,
                        struct err *e)
{
    struct comm_wrapped *w = &d->wrapped[d->n];
    struct comm *made = NULL;
    enum status st;

    if (!*k->at)
        return OK;
    *w = (struct comm_wrapped){ k->at, *k->at, nccl && (*k->at)->size > 1 };
    st = w->nccl ? built.nccl(&made, w->host, k->tags, deterministic, e)
                 : built.staged(&made, w->host, k->tags, e);
    if (made) {
        *w->at = made;
        d->n++;
    }
    return st;
}

/* "NCCL 2.28.9; tp through the host: ranks 0 and 1 share GPU-..." */
static void describe(struct comm_device *d, const struct grid *g, const struct kind *kinds, int n,
                     enum comm_choice how)
{
    char names[64] = "";
    const struct kind *shared = NULL;
    int staged = 0, used = 0;

    for (int i = 0; i < n; i++) {
        int sizes = (*kinds[i].at ? (*kinds[i].at)->size : 1) > 1;
        used += sizes;
        if (kinds[i].a < 0)
            continue;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", staged++ ? ", " : "",
                 kinds[i].name);
        shared = shared ? shared : &kinds[i];
    }
    d->text[0] = 0;
    if (g->ranks == 1)
        return;
    if (how == COMM_CHOICE_MPI || !built.nccl)
        snprintf(d->text, sizeof d->text, "MPI through the host's memory: %s",
                 built.nccl ? "debug.communication = 'mpi'" : "this build has no NCCL");
    else if (!shared)
        snprintf(d->text, sizeof d->text, "%s", built.nccl_version());
    else
        snprintf(d->text, sizeof d->text,
                 "%s%sMPI through the host's memory%s%s: ranks %d and %d "
                 "share %s",
                 staged < used ? built.nccl_version() : "", staged < used ? "; " : "",
                 staged < used ? " for " : "", staged < used ? names : "", shared->a, shared->b,
                 shared->uuid);
}

enum status comm_device_open(struct comm_device *d, struct grid *g, struct comm **tied,
                             const unsigned char *id, enum comm_choice how, int deterministic,
                             struct err *e)
{
    struct comm *none = NULL;
    struct kind kinds[COMM_DEVICE_KINDS] = {
        { .at = &g->tp_comm, .name = "tp" },
        { .at = &g->cp_comm, .tags = 2, .name = "cp" },
        { .at = &g->grad, .name = "grad" },
        { .at = &g->kv, .name = "kv" },
        { .at = &g->pp_comm, .tags = 2, .name = "pp" },
        { .at = tied ? tied : &none, .name = "tied" },
    };
    struct card mine = { .rank = g->rank, .node = g->rank };
    enum status st;

    *d = (struct comm_device){ .n = 0 };
    memcpy(mine.id, id, sizeof mine.id);
    comm_bytes_from(g->node, &mine.node, sizeof mine.node, 0);
    for (int i = 0; i < COMM_DEVICE_KINDS; i++)
        find_pair(g, &kinds[i], &mine);
    st = check_choice(kinds, COMM_DEVICE_KINDS, how, e);
    if (st != OK)
        return st;
    describe(d, g, kinds, COMM_DEVICE_KINDS, how);
    for (int i = 0; i < COMM_DEVICE_KINDS; i++) {
        int nccl = built.nccl && how != COMM_CHOICE_MPI && kinds[i].a < 0;
        st = wrap(d, &kinds[i], nccl, deterministic, e);
        if ((st = agree_silent(g->world, st, e)) != OK)
            return st;
    }
    return OK;
}

void comm_device_close(struct comm_device *d)
{
    while (d->n > 0) {
        struct comm_wrapped *w = &d->wrapped[--d->n];
        if (w->nccl)
            built.nccl_free(*w->at);
        else
            built.staged_free(*w->at);
        *w->at = w->host;
    }
}
