/* nccl_transfer.cc - messages, sums and mistakes of the emulated NCCL. */
#include "nccl_parts.h"

#include "cuda_bf16.h"
#include "cuda_fp16.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuemu_nccl
{

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

bool over(MPI_Request *r, MPI_Status *status)
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

template <class T, class W> static void fold(char *sum, const char *x, size_t n, ncclRedOp_t op)
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

static void combine(char *sum, const char *x, size_t n, ncclDataType_t t, ncclRedOp_t op)
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

void operation::add(int peer, bool sending, const void *from, void *to)
{
    message m = {};

    m.peer = peer;
    m.sending = sending;
    m.from = static_cast<const char *>(from);
    m.to = static_cast<char *>(to);
    m.request = MPI_REQUEST_NULL;
    messages.push_back(m);
}

void operation::begin()
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

void operation::arrived(const message &m, const MPI_Status &status)
{
    header theirs;
    int n;

    MPI_Get_count(&status, MPI_BYTE, &n);
    memcpy(&theirs, m.data.data(), sizeof theirs);
    if (n != (int)m.data.size() || memcmp(&theirs, &h, sizeof h))
        stop("%s %lld of %lld elements (type %d, op %d, root %d) meets rank %d's %s %lld of "
             "%lld elements (type %d, op %d, root %d)",
             h.call, h.number, h.count, h.type, h.op, h.root, m.peer, theirs.call, theirs.number,
             theirs.count, theirs.type, theirs.op, theirs.root);
    if (m.to) {
        cuemu::note_write(m.to, bytes);
        memcpy(m.to, m.data.data() + sizeof h, bytes);
    }
}

bool operation::poll()
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

} // namespace cuemu_nccl
