/* nccl_comm.cc - communicators of the emulated NCCL. */
#include "nccl_parts.h"

#include <cstring>

using namespace cuemu_nccl;

namespace
{

struct unique { /* in an ncclUniqueId */
    int maker, number;
};

/* Everybody tells the maker of the id who it is; the maker tells all to everybody. True when the
 * communicator is made. */
bool meet(ncclComm *c)
{
    bool all = true;

    for (MPI_Request &r : c->init)
        all = over(&r) && all;
    if (!all)
        return false;
    if (c->rank == 0 && !c->collected) {
        c->collected = true;
        c->init.clear();
        for (const member &m : c->told)
            if (m.ranks != c->ranks || m.rank < 0 || m.rank >= c->ranks)
                stop("ncclCommInitRankConfig: rank %d of %d, and rank %d of %d", c->rank, c->ranks,
                     m.rank, m.ranks);
            else
                c->members[(size_t)m.rank] = m;
        for (const member &m : c->told)
            if (m.rank != 0) {
                c->init.push_back(MPI_REQUEST_NULL);
                mpi(MPI_Isend(c->members.data(), (int)(c->members.size() * sizeof m), MPI_BYTE,
                              m.world, c->tag + TAG_INIT, MPI_COMM_WORLD, &c->init.back()),
                    "MPI_Isend");
            }
        return meet(c);
    }
    return true;
}

void announce(ncclComm *c, int maker)
{
    member me = { c->rank, 0, c->device, c->ranks };

    MPI_Comm_rank(MPI_COMM_WORLD, &me.world);
    c->told.assign(c->rank == 0 ? (size_t)c->ranks : 1, me);
    c->init.assign(c->rank == 0 ? (size_t)c->ranks - 1 : 2, MPI_REQUEST_NULL);
    if (c->rank == 0) {
        for (int r = 1; r < c->ranks; r++)
            mpi(MPI_Irecv(&c->told[(size_t)r], sizeof me, MPI_BYTE, MPI_ANY_SOURCE,
                          c->tag + TAG_INIT, MPI_COMM_WORLD, &c->init[(size_t)r - 1]),
                "MPI_Irecv");
        return;
    }
    mpi(MPI_Isend(c->told.data(), sizeof me, MPI_BYTE, maker, c->tag + TAG_INIT, MPI_COMM_WORLD,
                  &c->init[0]),
        "MPI_Isend");
    mpi(MPI_Irecv(c->members.data(), (int)(c->members.size() * sizeof me), MPI_BYTE, maker,
                  c->tag + TAG_INIT, MPI_COMM_WORLD, &c->init[1]),
        "MPI_Irecv");
}

bool shares_a_device(const ncclComm *c)
{
    for (size_t a = 0; a < c->members.size(); a++)
        for (size_t b = 0; b < a; b++)
            if (c->members[a].device == c->members[b].device)
                return true;
    return false;
}

} // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int made;
    unique u = { 0, made++ };

    if (made > IDS_EACH)
        stop("more than %d communicators", IDS_EACH);
    MPI_Comm_rank(MPI_COMM_WORLD, &u.maker);
    memset(id, 0, sizeof *id);
    memcpy(id->internal, &u, sizeof u);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ncclComm *c = new ncclComm(); /* never freed: work in a stream may still name it */
    unique u;

    memcpy(&u, id.internal, sizeof u);
    c->ranks = ranks;
    c->rank = rank;
    c->blocking = !config || config->blocking != 0;
    c->alive = true;
    c->tag = FIRST_TAG + (u.maker * IDS_EACH + u.number) * TAGS_EACH;
    c->members.resize((size_t)ranks);
    c->sent.resize((size_t)ranks);
    c->received.resize((size_t)ranks);
    c->state = ncclInProgress;
    cudaGetDevice(&c->device);
    *out = c;
    announce(c, u.maker);
    if (!c->blocking)
        return ncclInProgress;
    while (!meet(c)) {
    }
    c->state = shares_a_device(c) ? ncclInvalidUsage : ncclSuccess;
    return c->state;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    if (!c->alive)
        stop("ncclCommGetAsyncError: this communicator does not exist");
    if (c->state == ncclInProgress && !c->init.empty()) {
        if (meet(c)) {
            c->init.clear();
            c->state = shares_a_device(c) ? ncclInvalidUsage : ncclSuccess;
        }
    } else if (c->state == ncclInProgress && --c->delay <= 0) {
        c->state = ncclSuccess;
        launch(c);
    }
    *state = c->state;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    check_comm(c, "ncclCommFinalize");
    return settle(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    check_comm(c, "ncclCommDestroy");
    c->alive = false;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    c->alive = false;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t rc)
{
    static const char *const text[] = { "no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress" };

    return text[rc];
}

const char *ncclGetLastError(ncclComm_t c)
{
    return c && c->state == ncclInvalidUsage ? "Duplicate GPU detected" : "";
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_MAJOR * 10000 + NCCL_MINOR * 100 + NCCL_PATCH;
    return ncclSuccess;
}

/* A GPU goes on while its host waits for MPI. */
int MPI_Test(MPI_Request *r, int *done, MPI_Status *status)
{
    cuemu::progress();
    return PMPI_Test(r, done, status);
}
