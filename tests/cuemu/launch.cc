/* launch.cc - grids, blocks and the order in which threads run. */
#include "machine.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuemu
{
namespace
{

std::vector<fiber *> &fibers = *new std::vector<fiber *>; /* reachable for the leak checker */

enum class order { unknown, forward, reverse, shuffled } chosen;
unsigned long long seed;

/* CUEMU_ORDER = forward | reverse | an integer, the seed of a random order */
void choose_order()
{
    const char *s = getenv("CUEMU_ORDER");

    if (!s || !*s || !strcmp(s, "forward")) {
        chosen = order::forward;
    } else if (!strcmp(s, "reverse")) {
        chosen = order::reverse;
    } else {
        char *end;
        seed = strtoull(s, &end, 10) * 2654435761u + 12345;
        if (*end)
            stop("CUEMU_ORDER is neither forward, reverse nor an integer");
        chosen = order::shuffled;
    }
}

void arrange(std::vector<unsigned> &v, size_t n)
{
    v.resize(n);
    for (size_t i = 0; i < n; i++)
        v[i] = (unsigned)(chosen == order::reverse ? n - 1 - i : i);
    if (chosen == order::shuffled)
        for (size_t i = n; i > 1; i--)
            std::swap(v[i - 1], v[random_below((unsigned)i)]);
}

/* A warp runs on until all its lanes are stuck at a block barrier or have ended: the largest
 * distance between warps, which shows missing barriers. A random order sometimes breaks off. */
bool run_warp(unsigned warp)
{
    static std::vector<unsigned> lanes;
    size_t first = (size_t)warp * WARP, n = (size_t)running.threads - first;
    bool any = false;

    for (bool ran = true; ran && (chosen != order::shuffled || random_below(8));) {
        ran = false;
        arrange(lanes, n < (size_t)WARP ? n : (size_t)WARP);
        for (unsigned l : lanes) {
            fiber *f = fibers[first + l];
            if (f->st != state::ready)
                continue;
            fiber_run(f);
            ran = any = true;
        }
    }
    return any;
}

void place_threads(unsigned id, int seat)
{
    dim3 g = running.shape->grid, b = running.shape->block;

    for (int i = 0; i < running.threads; i++) {
        unsigned t = (unsigned)i;
        fiber *f = fibers[t];
        f->c.thread = { t % b.x, t / b.x % b.y, t / b.x / b.y };
        f->c.block = { id % g.x, id / g.x % g.y, id / g.x / g.y };
        f->c.block_size = b;
        f->c.grid_size = g;
        f->c.lane = i % WARP;
        f->c.warp = i / WARP;
        f->st = state::ready;
        if (f->c.lane == 0)
            running.present[f->c.warp] = running.waiting[f->c.warp] = 0;
        running.present[f->c.warp] |= 1u << f->c.lane;
        f->where = { nullptr, 0 };
        f->block_barriers = f->warp_barriers = 0;
        f->copies = f->groups = 0;
        fiber_prepare(f, seat);
    }
}

[[noreturn]] void stop_stuck(const fiber *f)
{
    if (f->st == state::at_warp_operation && f->mask & ~running.present[f->c.warp])
        stop("the mask of a warp operation names a lane that has exited", f);
    stop("deadlock: a barrier or warp operation that not all threads reach", f);
}

void run_block()
{
    static std::vector<unsigned> warps;

    for (;;) {
        bool any = false;
        arrange(warps, (size_t)(running.threads + WARP - 1) / WARP);
        for (unsigned w : warps)
            any = run_warp(w) || any;
        release_block_barrier();
        const fiber *stuck = nullptr;
        int ended = 0;
        for (int i = 0; i < running.threads; i++) {
            const fiber *f = fibers[(size_t)i];
            if (f->st == state::ready)
                any = true;
            else if (f->st == state::done)
                ended++;
            else
                stuck = f;
        }
        if (ended == running.threads)
            return;
        if (!any && stuck)
            stop_stuck(stuck);
    }
}

void run_grid(const launch_shape &shape, const std::function<void()> &thread)
{
    static std::vector<unsigned> blocks;
    size_t n = (size_t)shape.grid.x * shape.grid.y * shape.grid.z;
    int seat = (int)(stream_number() % 2 * 2);

    running.shape = &shape;
    if (chosen == order::unknown)
        choose_order();
    running.threads = (int)(shape.block.x * shape.block.y * shape.block.z);
    while (fibers.size() < (size_t)running.threads)
        fibers.push_back(fiber_create());
    running.fibers = fibers.data();
    running.thread = &thread;
    scheduler_enter();
    fresh_begin();
    arrange(blocks, n);
    for (size_t k = 0; k < n; k++) {
        shared_open(shape.shared);
        TSAN(running.order = reinterpret_cast<ordering *>(fresh_memory(sizeof(ordering)));)
        place_threads(blocks[k], seat + (int)(k % 2));
        run_block();
        shared_close();
    }
    shared_forget();
    scheduler_leave();
    running = {};
}

} // namespace

unsigned random_below(unsigned n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % n;
}

void stop(const char *what, const fiber *f)
{
    fprintf(stderr, "cuemu: %s", what);
    if (running.shape)
        fprintf(stderr, "; kernel %s", running.shape->name);
    if (f) {
        uint3 b = f->c.block, t = f->c.thread;
        fprintf(stderr, ", block (%u,%u,%u), thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y, t.z);
        if (f->where.file)
            fprintf(stderr, ", at %s:%d", f->where.file, f->where.line);
    }
    fprintf(stderr, "\n");
    abort();
}

/* Errors as the device's: they come back from cudaGetLastError. */
void launch(const launch_shape &shape, cudaStream_t stream, std::function<void()> thread)
{
    dim3 g = shape.grid, b = shape.block;
    size_t threads = (size_t)b.x * b.y * b.z;

    if (current)
        stop("a kernel launches a kernel", me);
    if (device_error() != cudaSuccess) {
        failed(device_error());
    } else if (!stream_usable(stream)) {
        failed(cudaErrorInvalidResourceHandle);
    } else if (threads < 1 || threads > THREADS_MAX || b.z > 64 || g.x < 1 || g.x > 0x7fffffff ||
               g.y < 1 || g.y > 65535 || g.z < 1 || g.z > 65535) {
        failed(cudaErrorInvalidConfiguration);
    } else if (shape.shared > dynamic_shared_limit(shape.kernel)) {
        failed(cudaErrorInvalidValue);
    } else {
        enqueue(stream, [=] { run_grid(shape, thread); });
    }
}

} // namespace cuemu
