/* The emulated multiprocessor: fibers and the block that runs. Internal to tests/cuemu/. */
#ifndef CUEMU_MACHINE_H
#define CUEMU_MACHINE_H
#include "cuemu.h"
#include "sanitize.h"
#include <vector>
#ifndef __x86_64__
#define CUEMU_UCONTEXT
#endif
#ifdef CUEMU_UCONTEXT
#include <ucontext.h>
#endif
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace cuemu
{

enum class state { ready, at_block_barrier, at_warp_operation, done };
constexpr int WARP = 32, THREADS_MAX = 1024, COPIES_MAX = 1024, GROUPS_MAX = 32;
constexpr int SHARED_DEFAULT = 48 << 10, SHARED_MAX = 227 << 10;

/* Even and odd blocks of even and odd streams use separate seats, threads of their own to the race
 * detector, which so sees races between blocks and between streams. */
enum { SEATS = 4 };
struct seat {
    char *stack;
    void *race; /* the race detector's fiber */
};

struct pending_copy {
    void *to;
    const void *from; /* NULL: zeros */
};

struct fiber {
    context c;
    state st;
    place where; /* of the barrier or warp operation that it has reached */
    seat seats[SEATS];
    seat *at;
    void *fake_stack;
#ifdef CUEMU_UCONTEXT
    ucontext_t registers;
#else
    void *stack_pointer;
#endif
    unsigned mask;                          /* of the warp operation */
    unsigned block_barriers, warp_barriers; /* passed so far */
    bool predicate;
    /* what a lane brings to a warp operation, and what it takes away */
    int source; /* lane to read, -1: keep the own value */
    size_t bytes;
    alignas(8) unsigned char brought[8], taken[8];
    const void *operands[3];
    int copies, groups, group_end[GROUPS_MAX]; /* cp.async: closed groups, oldest first */
    pending_copy copy[COPIES_MAX];
};

/* Addresses that order threads for the race detector. Two of each: with one, the release of a fast
 * thread's next barrier would leak into a slow one's acquire of this. Fresh for every block. */
struct ordering {
    char block[2], warp[THREADS_MAX / WARP][2];
};

struct block_state {
    const launch_shape *shape;
    const std::function<void()> *thread;
    fiber *const *fibers;
    int threads;
    int votes;
    unsigned present[THREADS_MAX / WARP]; /* lanes that have not ended, by warp */
    unsigned waiting[THREADS_MAX / WARP]; /* lanes at a warp operation */
    ordering *order;
};
extern block_state running;
extern fiber *me;

/* ---- fibers.cc ---- */
fiber *fiber_create();
void fiber_prepare(fiber *f, int seat); /* to run *running.thread from its begin */
void fiber_run(fiber *f);               /* until it yields */
void fiber_yield();
void scheduler_enter(); /* at the begin and the end of a launch */
void scheduler_leave();

/* ---- collectives.cc ---- */
void release_block_barrier(); /* if all threads that still run have reached it */
/* The last lane to come calls complete, then all go on. */
void warp_meet(place where, unsigned mask, void (*complete)(fiber *const *warp, unsigned mask));

/* ---- shared.cc ---- */
void shared_open(size_t dynamic_bytes); /* for a block: sets dynamic_shared of every thread */
void shared_close();
void shared_forget(); /* after the launch */
bool shared_contains(const void *p, size_t bytes);
void fresh_begin();               /* of a launch */
char *fresh_memory(size_t bytes); /* filled with 0xff: a NaN in every float format */
void give_back(char *p);

/* ---- launch.cc ---- */
[[noreturn]] void stop(const char *what, const fiber *f = nullptr);
unsigned random_below(unsigned n);

/* ---- device.cc ---- */
cudaError_t failed(cudaError_t e); /* remembers e for cudaGetLastError */
cudaError_t device_error();        /* of a machine without a usable device, or success */
int device_of_thread();
size_t dynamic_shared_limit(const void *kernel);

/* ---- streams.cc ---- */
bool stream_usable(cudaStream_t s); /* it is alive and of the current device */
unsigned stream_number();           /* of the stream whose work runs */
void synchronize_all();

/* ---- protect.cc ---- */
void *storage_take(size_t bytes); /* of a device block; NULL: there is none */
void storage_give(void *p);
void memory_open(); /* device memory is accessible between these */
void memory_close();

} // namespace cuemu
#endif
