/* nccl.cc - NCCL over MPI. A send ends only with its receive, the transfers of a communicator come
 * one after the other, those of a group together; sums run from the last rank to the first.
 *
 * A communicator that does not block does each call's work only when it is asked for its state for
 * the second time: an event recorded before misses the transfer. Calls that do not fit together,
 * buffers that are not this device's, two ranks on one device end the test. Everything runs in the
 * thread that calls. */
#include "nccl_parts.h"

#include <cstdio>

namespace cuemu_nccl
{

static int group_depth;
static std::vector<ncclComm *> in_group; /* communicators with pending calls */

/* ---- calls ---- */

static void check_buffer(const ncclComm *c, const char *call, const void *p, size_t bytes)
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

static std::shared_ptr<operation> operation_of(ncclComm *c, const char *call, size_t n,
                                               ncclDataType_t t, int op, int root)
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

static std::shared_ptr<operation> message_of(ncclComm *c, size_t n, ncclDataType_t t,
                                             long long *number)
{
    std::shared_ptr<operation> o = operation_of(c, "message", n, t, 0, 0);

    c->collectives--;
    o->h.number = (*number)++;
    o->tag = c->tag + TAG_MESSAGE;
    return o;
}

static ncclResult_t call(const std::shared_ptr<operation> &o, cudaStream_t stream)
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

} // namespace cuemu_nccl

using namespace cuemu_nccl;

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
