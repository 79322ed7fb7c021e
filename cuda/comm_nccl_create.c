#include "cuda/comm_nccl.h"

#include "base/arena.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_SECONDS 120.0

const char *comm_nccl_version(void)
{
    static char text[48];
    int v = 0;

    if (ncclGetVersion(&v) != ncclSuccess || v < 10000)
        return "NCCL";
    snprintf(text, sizeof text, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return text;
}

/* The failure of the lowest rank that has one becomes everybody's. */
static enum status connect_agree(struct comm *host, enum status st, struct err *e)
{
    int64_t worst = st == OK ? 0 : host->size - host->rank;
    struct err said = { "" };

    comm_max_i64(host, &worst, 1);
    if (worst == 0)
        return OK;
    if (st != OK)
        said = *e;
    comm_bytes_from(host, &said, sizeof said, host->size - (int)worst);
    e->text[0] = 0;
    return err_set(e, E_RESOURCE, "%s", said.text);
}

static enum status connect(struct comm *host, struct channel *on, const ncclUniqueId *id,
                           struct err *e)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    double limit = clock_now() + CONNECT_SECONDS;
    struct device_pause pause = { 0 };
    ncclResult_t rc;
    char why[512];

    config.blocking = 0;
    config.maxCTAs = MOST_BLOCKS;
    rc = ncclCommInitRankConfig(&on->nccl, host->size, *id, host->rank, &config);
    while ((rc == ncclSuccess || rc == ncclInProgress) && (rc = nccl_state(on)) == ncclInProgress &&
           clock_now() < limit)
        device_pause(&pause, 0);
    if (rc == ncclSuccess)
        return OK;
    if (rc == ncclInProgress)
        snprintf(why, sizeof why, "no answer for %.0f s", CONNECT_SECONDS);
    else
        snprintf(why, sizeof why, "%s: %.400s", ncclGetErrorString(rc), ncclGetLastError(on->nccl));
    return err_set(e, E_RESOURCE,
                   "NCCL cannot connect the %d ranks of '%s': its rank %d says: %s. "
                   "NCCL_DEBUG=INFO shows more, NCCL_SOCKET_IFNAME names the network to use; "
                   "debug.communication = 'mpi' does without NCCL",
                   host->size, host->name, host->rank, why);
}

static enum status channel_open(struct comm *host, struct channel *on, struct err *e)
{
    struct {
        ncclUniqueId id;
        ncclResult_t rc;
    } made;
    enum status st;

    memset(&made, 0, sizeof made);
    on->name = host->name;
    if (host->rank == 0)
        made.rc = ncclGetUniqueId(&made.id);
    comm_bytes_from(host, &made, sizeof made, 0);
    if (made.rc != ncclSuccess)
        return err_set(e, E_RESOURCE,
                       "NCCL cannot start for '%s': %s; NCCL_DEBUG=INFO shows why, "
                       "debug.communication = 'mpi' does without NCCL",
                       host->name, ncclGetErrorString(made.rc));
    st = connect_agree(host, connect(host, on, &made.id, e), e);
    if (st != OK)
        return st;
    cuda_check(cudaStreamCreateWithFlags(&on->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    on->start = device_event_create();
    return OK;
}

enum status comm_nccl_create(struct comm **c, struct comm *host, int tags, int deterministic,
                             struct err *e)
{
    struct nccl *m = mem_take(sizeof *m + (size_t)(1 + tags) * sizeof *m->channel);
    enum status st = OK;

    BUG_IF(host->size < 2);
    device_comm_init(&m->base, host, &nccl_ops);
    *c = &m->base.self;
    if (deterministic) { /* else chosen anew where the machine is used in another way */
        setenv("NCCL_ALGO", "Ring", 0);
        setenv("NCCL_PROTO", "Simple", 0);
    }
    while (st == OK && m->channels < 1 + tags)
        st = channel_open(host, &m->channel[m->channels++], e);
    return st;
}

/* A communicator that was never made whole is not waited for. */
static void channel_close(struct channel *on)
{
    if (!on->stream) {
        if (on->nccl)
            ncclCommAbort(on->nccl);
        return;
    }
    nccl_check(ncclCommFinalize(on->nccl), "ncclCommFinalize", on);
    nccl_finish_call(on);
    nccl_check(ncclCommDestroy(on->nccl), "ncclCommDestroy", on);
    cuda_check(cudaEventDestroy(on->start), "cudaEventDestroy");
    cuda_check(cudaStreamDestroy(on->stream), "cudaStreamDestroy");
}

void comm_nccl_free(struct comm *c)
{
    struct nccl *m = nccl_of(c);
    struct flight *f;

    for (int i = 0; i < m->channels; i++)
        channel_close(&m->channel[i]);
    while ((f = m->spare)) {
        m->spare = f->next;
        cuda_check(cudaEventDestroy(f->end), "cudaEventDestroy");
        mem_give(f);
    }
    mem_give(m);
}
