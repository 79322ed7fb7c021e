/* What the files of the emulated NCCL share. */
#ifndef CUEMU_NCCL_PARTS_H
#define CUEMU_NCCL_PARTS_H
#include "cuemu.h"
#include "nccl.h"

#include <memory>
#include <mpi.h>
#include <vector>

namespace cuemu_nccl
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

} // namespace cuemu_nccl

struct ncclComm {
    int ranks, rank, device, tag;
    bool blocking, alive;
    std::vector<cuemu_nccl::member> members; /* by rank, when it is made            */
    std::vector<MPI_Request> init;
    std::vector<cuemu_nccl::member> told; /* by others; mine                     */
    bool collected;                       /* the maker of the id heard of all    */
    ncclResult_t state;
    int delay; /* questions until a call has its effect */
    std::vector<std::shared_ptr<cuemu_nccl::operation>> pending; /* called, not yet in the stream */
    cudaStream_t stream; /* of pending                          */
    long long collectives;
    std::vector<long long> sent, received;
};

namespace cuemu_nccl
{

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

    void add(int peer, bool sending, const void *from, void *to);

    void begin();

    void arrived(const message &m, const MPI_Status &status);

    bool poll();
};

/* ---- nccl_transfer.cc ---- */
__attribute__((noreturn, format(printf, 1, 2))) void stop(const char *format, ...);
void mpi(int rc, const char *what);
bool over(MPI_Request *r, MPI_Status *status = MPI_STATUS_IGNORE);
size_t size_of(ncclDataType_t t);
/* Sum of `own` and of what has come, from the last rank to the first. */
void reduce(operation &o, const char *own, char *out, size_t n, ncclDataType_t t, ncclRedOp_t op);
void copy(void *to, const void *from, size_t bytes);

/* ---- nccl.cc ---- */
void check_comm(const ncclComm *c, const char *call);
void launch(ncclComm *c); /* put what was called into the stream, as one */
ncclResult_t settle(ncclComm *c);

} // namespace cuemu_nccl
#endif
