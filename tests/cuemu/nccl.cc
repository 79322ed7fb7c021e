/* nccl.cc - NCCL over MPI. A send ends only with its receive, the transfers of a communicator come
 * one after the other, those of a group together; sums run from the last rank to the first.
 *
 * A communicator that does not block does each call's work only when it is asked for its state for
 * the second time: an event recorded before misses the transfer. Calls that do not fit together,
 * buffers that are not this device's, two ranks on one device end the test. Everything runs in the
 * thread that calls. */
#include "nccl.h"

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuemu.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mpi.h>
#include <vector>

namespace
{

enum { FIRST_TAG = 1000, IDS_EACH = 1024, TAGS_EACH = 3, DELAY = 2 };
enum { TAG_INIT, TAG_COLLECTIVE, TAG_MESSAGE };

/* What goes before the data: both sides must mean the same. */
struct header {
    char call[16];
    long long number, count;
    int type, op, root, pad;
};

struct member { /* of a communicator, as told when it is made */
    int rank, world, device, ranks;
};

struct operation;

} // namespace

struct ncclComm {
    int ranks, rank, device, tag;
    bool blocking, alive;
    std::vector<member> members; /* by rank, when it is made            */
    std::vector<MPI_Request> init;
    std::vector<member> told; /* by others; mine                     */
    bool collected;           /* the maker of the id heard of all    */
    ncclResult_t state;
    int delay;                                       /* questions until a call has its effect */
    std::vector<std::shared_ptr<operation>> pending; /* called, not yet in the stream */
    cudaStream_t stream;                             /* of pending                          */
    long long collectives;
    std::vector<long long> sent, received;
};

namespace
{

int group_depth;
std::vector<ncclComm *> in_group; /* communicators with pending calls */

__attribute__((noreturn, format(printf, 1, 2))) void stop(const char *format, ...)
{
    va_list ap;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "nccl.cc: rank %d: ", rank);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    fflush(stderr);
    abort();
}

void mpi(int rc, const char *what)
{
    if (rc != MPI_SUCCESS)
        stop("MPI failed: %s", what);
}

bool over(MPI_Request *r, MPI_Status *status = MPI_STATUS_IGNORE)
{
    int done = 0;
    int rc = PMPI_Test(r, &done, status);

    if (rc != MPI_SUCCESS)
        stop("a rank sends more than the other one receives");
    return done;
}

/* ---- arithmetic ---- */

size_t size_of(ncclDataType_t t)
{
    switch (t) {
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclFloat64:
        return 8;
    }
    stop("type %d is not emulated", (int)t);
}

template <class T, class W> void fold(char *sum, const char *x, size_t n, ncclRedOp_t op)
{
    for (size_t i = 0; i < n; i++) {
        T a, b;
        memcpy(&a, sum + i * sizeof a, sizeof a);
        memcpy(&b, x + i * sizeof b, sizeof b);
        W p = (W)a, q = (W)b;
        a = (T)(op == ncclSum ? (W)(p + q) : p > q ? p : q);
        memcpy(sum + i * sizeof a, &a, sizeof a);
    }
}

void combine(char *sum, const char *x, size_t n, ncclDataType_t t, ncclRedOp_t op)
{
    switch (t) {
    case ncclFloat32:
        return fold<float, float>(sum, x, n, op);
    case ncclFloat64:
        return fold<double, double>(sum, x, n, op);
    case ncclFloat16:
        return fold<__half, float>(sum, x, n, op);
    case ncclBfloat16:
        return fold<__nv_bfloat16, float>(sum, x, n, op);
    case ncclInt32:
        return fold<int, int>(sum, x, n, op);
    case ncclInt64:
        return fold<long long, long long>(sum, x, n, op);
    case ncclUint8:
        break;
    }
    stop("bytes are not reduced");
}

/* ---- operations ---- */

struct message {
    int peer;
    bool sending;
    const char *from; /* of what is sent */
    char *to;         /* of what is received; NULL: stays in data */
    std::vector<char> data;
    MPI_Request request;
    bool done;
};

/* A call: its messages, and what is done when all are there. */
struct operation {
    ncclComm *c;
    header h;
    int tag;
    size_t bytes; /* of a message */
    std::vector<message> messages;
    std::function<void(operation &)> finish;
    bool begun, finished;

    void add(int peer, bool sending, const void *from, void *to)
    {
        message m = {};

        m.peer = peer;
        m.sending = sending;
        m.from = static_cast<const char *>(from);
        m.to = static_cast<char *>(to);
        m.request = MPI_REQUEST_NULL;
        messages.push_back(m);
    }

    void begin()
    {
        begun = true;
        for (message &m : messages) {
            int peer = c->members[(size_t)m.peer].world, n = (int)(sizeof h + bytes);
            m.data.resize(sizeof h + bytes);
            if (m.sending) {
                memcpy(m.data.data(), &h, sizeof h);
                cuemu::note_read(m.from, bytes);
                memcpy(m.data.data() + sizeof h, m.from, bytes);
                mpi(MPI_Issend(m.data.data(), n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &m.request),
                    "MPI_Issend");
            } else {
                mpi(MPI_Irecv(m.data.data(), n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &m.request),
                    "MPI_Irecv");
            }
        }
    }

    void arrived(const message &m, const MPI_Status &status)
    {
        header theirs;
        int n;

        MPI_Get_count(&status, MPI_BYTE, &n);
        memcpy(&theirs, m.data.data(), sizeof theirs);
        if (n != (int)m.data.size() || memcmp(&theirs, &h, sizeof h))
            stop("%s %lld of %lld elements (type %d, op %d, root %d) meets rank %d's %s %lld of "
                 "%lld elements (type %d, op %d, root %d)",
                 h.call, h.number, h.count, h.type, h.op, h.root, m.peer, theirs.call,
                 theirs.number, theirs.count, theirs.type, theirs.op, theirs.root);
        if (m.to) {
            cuemu::note_write(m.to, bytes);
            memcpy(m.to, m.data.data() + sizeof h, bytes);
        }
    }

    bool poll()
    {
        bool all = true;

        if (!begun)
            begin();
        for (message &m : messages) {
            MPI_Status status;
            if (!m.done && (m.done = over(&m.request, &status)) && !m.sending)
                arrived(m, status);
            all = all && m.done;
        }
        if (all && !finished) {
            finished = true;
            if (finish)
                finish(*this);
            messages.clear();
        }
        return all;
    }
};

/* Sum of `own` and of what has come, from the last rank to the first. */
void reduce(operation &o, const char *own, char *out, size_t n, ncclDataType_t t, ncclRedOp_t op)
{
    std::vector<char> sum;

    for (int r = o.c->ranks - 1; r >= 0; r--) {
        const char *x = own;
        for (const message &m : o.messages)
            if (!m.sending && m.peer == r)
                x = m.data.data() + sizeof o.h;
        if (sum.empty())
            sum.assign(x, x + n * size_of(t));
        else
            combine(sum.data(), x, n, t, op);
    }
    cuemu::note_read(own, sum.size());
    cuemu::note_write(out, sum.size());
    memcpy(out, sum.data(), sum.size());
}

void copy(void *to, const void *from, size_t bytes)
{
    if (to == from)
        return;
    cuemu::note_read(from, bytes);
    cuemu::note_write(to, bytes);
    memcpy(to, from, bytes);
}

/* ---- calls ---- */

void check_buffer(const ncclComm *c, const char *call, const void *p, size_t bytes)
{
    const char *ends[2] = { static_cast<const char *>(p),
                            static_cast<const char *>(p) + (bytes ? bytes - 1 : 0) };
    struct cudaPointerAttributes a;

    for (const char *end : ends) {
        cudaPointerGetAttributes(&a, end);
        if (a.type != cudaMemoryTypeDevice || a.device != c->device)
            stop("%s: a buffer is not memory of device %d", call, c->device);
    }
}

void check_comm(const ncclComm *c, const char *call)
{
    if (!c->alive || c->members.empty())
        stop("%s: this communicator does not exist", call);
    if (c->state == ncclInProgress)
        stop("%s: the call before is still in progress", call);
}

/* Put what was called into the stream, as one. */
void launch(ncclComm *c)
{
    std::vector<std::shared_ptr<operation>> all;

    all.swap(c->pending);
    if (all.empty())
        return;
    cuemu::enqueue_shared(c->stream, [all] {
        bool finished = true;
        for (const auto &o : all)
            finished = o->poll() && finished;
        return finished;
    });
}

ncclResult_t settle(ncclComm *c)
{
    if (c->blocking) {
        launch(c);
        return ncclSuccess;
    }
    c->state = ncclInProgress;
    c->delay = DELAY;
    return ncclInProgress;
}

std::shared_ptr<operation> operation_of(ncclComm *c, const char *call, size_t n, ncclDataType_t t,
                                        int op, int root)
{
    std::shared_ptr<operation> o(new operation());

    check_comm(c, call);
    o->c = c;
    snprintf(o->h.call, sizeof o->h.call, "%s", call);
    o->h.count = (long long)n;
    o->h.type = t;
    o->h.op = op;
    o->h.root = root;
    o->h.number = c->collectives++;
    o->tag = c->tag + TAG_COLLECTIVE;
    o->bytes = n * size_of(t);
    return o;
}

std::shared_ptr<operation> message_of(ncclComm *c, size_t n, ncclDataType_t t, long long *number)
{
    std::shared_ptr<operation> o = operation_of(c, "message", n, t, 0, 0);

    c->collectives--;
    o->h.number = (*number)++;
    o->tag = c->tag + TAG_MESSAGE;
    return o;
}

ncclResult_t call(const std::shared_ptr<operation> &o, cudaStream_t stream)
{
    ncclComm *c = o->c;

    if (!c->pending.empty() && c->stream != stream)
        stop("%s: one communicator on two streams in a group", o->h.call);
    if (c->pending.empty())
        in_group.push_back(c);
    c->stream = stream;
    c->pending.push_back(o);
    if (group_depth > 0)
        return ncclSuccess;
    in_group.clear();
    return settle(c);
}

} // namespace

ncclResult_t ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t rc = ncclSuccess;

    if (group_depth-- == 0)
        stop("ncclGroupEnd: no group");
    if (group_depth > 0)
        return ncclSuccess;
    for (ncclComm *c : in_group)
        if (settle(c) == ncclInProgress)
            rc = ncclInProgress;
    in_group.clear();
    return rc;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op,
                           ncclComm_t c, cudaStream_t stream)
{
    auto o = operation_of(c, "all-reduce", n, t, op, 0);

    check_buffer(c, o->h.call, in, o->bytes);
    check_buffer(c, o->h.call, out, o->bytes);
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank) {
            o->add(r, true, in, nullptr);
            o->add(r, false, nullptr, nullptr);
        }
    o->finish = [=](operation &self) {
        reduce(self, static_cast<const char *>(in), static_cast<char *>(out), n, t, op);
    };
    return call(o, stream);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t op,
                        int root, ncclComm_t c, cudaStream_t stream)
{
    auto o = operation_of(c, "reduce", n, t, op, root);

    check_buffer(c, o->h.call, in, o->bytes);
    if (c->rank != root) {
        o->add(root, true, in, nullptr);
        return call(o, stream);
    }
    check_buffer(c, o->h.call, out, o->bytes);
    for (int r = 0; r < c->ranks; r++)
        if (r != root)
            o->add(r, false, nullptr, nullptr);
    o->finish = [=](operation &self) {
        reduce(self, static_cast<const char *>(in), static_cast<char *>(out), n, t, op);
    };
    return call(o, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t t,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    auto o = operation_of(c, "reduce-scatter", n, t, op, 0);
    const char *pieces = static_cast<const char *>(in), *mine = pieces + (size_t)c->rank * o->bytes;

    check_buffer(c, o->h.call, in, o->bytes * (size_t)c->ranks);
    check_buffer(c, o->h.call, out, o->bytes);
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank) {
            o->add(r, true, pieces + (size_t)r * o->bytes, nullptr);
            o->add(r, false, nullptr, nullptr);
        }
    o->finish = [=](operation &self) { reduce(self, mine, static_cast<char *>(out), n, t, op); };
    return call(o, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c,
                           cudaStream_t stream)
{
    auto o = operation_of(c, "all-gather", n, t, 0, 0);
    char *pieces = static_cast<char *>(out);
    size_t bytes = o->bytes;

    check_buffer(c, o->h.call, in, bytes);
    check_buffer(c, o->h.call, out, bytes * (size_t)c->ranks);
    for (int r = 0; r < c->ranks; r++)
        if (r != c->rank) {
            o->add(r, true, in, nullptr);
            o->add(r, false, nullptr, pieces + (size_t)r * bytes);
        }
    o->finish = [=](operation &self) { copy(pieces + (size_t)self.c->rank * bytes, in, bytes); };
    return call(o, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t t, int root,
                           ncclComm_t c, cudaStream_t stream)
{
    auto o = operation_of(c, "broadcast", n, t, 0, root);
    size_t bytes = o->bytes;

    check_buffer(c, o->h.call, out, bytes);
    if (c->rank != root) {
        o->add(root, false, nullptr, out);
        return call(o, stream);
    }
    check_buffer(c, o->h.call, in, bytes);
    for (int r = 0; r < c->ranks; r++)
        if (r != root)
            o->add(r, true, in, nullptr);
    o->finish = [=](operation &) { copy(out, in, bytes); };
    return call(o, stream);
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    auto o = message_of(c, n, t, &c->sent[(size_t)peer]);

    check_buffer(c, o->h.call, in, o->bytes);
    o->add(peer, true, in, nullptr);
    return call(o, stream);
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
                      cudaStream_t stream)
{
    auto o = message_of(c, n, t, &c->received[(size_t)peer]);

    check_buffer(c, o->h.call, out, o->bytes);
    o->add(peer, false, nullptr, out);
    return call(o, stream);
}

/* ---- communicators ---- */

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
