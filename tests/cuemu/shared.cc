/* shared.cc - shared memory: every array a heap block of its own, so that overruns are seen. */
#include "machine.h"
#include <cstdlib>
#include <sys/mman.h>

namespace cuemu
{
namespace
{

struct array {
    const void *site;
    char *p;
    size_t bytes;
    bool open; /* filled for the block that runs */
};
std::vector<array> arrays; /* of the launch */
array dynamic;

#ifdef CUEMU_TSAN
/* Blocks of a launch are not ordered, so each has memory of its own; a later launch in the stream
 * is and takes the same again. (Unmapping would make the detector forget, but MPI libraries patch
 * munmap under its hands.) */
constexpr size_t CHUNK = 4 << 20;
struct arena {
    std::vector<char *> chunks;
    size_t chunk, used;
};
std::vector<arena> &arenas = *new std::vector<arena>; /* by stream */
#endif

} // namespace

void fresh_begin()
{
#ifdef CUEMU_TSAN
    if (arenas.size() <= stream_number())
        arenas.resize(stream_number() + 1);
    arenas[stream_number()].chunk = arenas[stream_number()].used = 0;
#endif
}

char *fresh_memory(size_t bytes)
{
    void *p;
#ifdef CUEMU_TSAN
    arena &a = arenas[stream_number()];
    bytes = (bytes + 127) & ~(size_t)127;
    if (a.used + bytes > CHUNK) {
        a.chunk++;
        a.used = 0;
    }
    if (a.chunk == a.chunks.size()) {
        p = mmap(nullptr, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            stop("no memory for shared arrays");
        a.chunks.push_back(static_cast<char *>(p));
    }
    p = a.chunks[a.chunk] + a.used;
    a.used += bytes;
#else
    if (posix_memalign(&p, 128, bytes) != 0)
        stop("no memory for shared arrays");
#endif
    raw_fill(p, 0xff, bytes);
    return static_cast<char *>(p);
}

void give_back(char *p)
{
    (void)p;
#ifndef CUEMU_TSAN
    free(p);
#endif
}

/* Between blocks of a launch the memory is kept and filled again, but for the race detector it must
 * be another: blocks are not ordered. */
void shared_open(size_t bytes)
{
    if (bytes && !dynamic.p)
        dynamic = { nullptr, fresh_memory(bytes), bytes, true };
    else if (bytes)
        raw_fill(dynamic.p, 0xff, bytes);
    for (int i = 0; i < running.threads; i++)
        running.fibers[i]->c.dynamic_shared = dynamic.p;
}

void shared_close()
{
    TSAN(shared_forget();)
    for (array &a : arrays)
        a.open = false;
}

void shared_forget()
{
    for (array &a : arrays)
        give_back(a.p);
    arrays.clear();
    if (dynamic.p)
        give_back(dynamic.p);
    dynamic = {};
}

void *shared_array(const void *site, size_t bytes)
{
    size_t total = dynamic.bytes, fixed = bytes;

    for (array &a : arrays) {
        if (a.site == site) {
            if (!a.open)
                raw_fill(a.p, 0xff, a.bytes);
            a.open = true;
            return a.p;
        }
        fixed += a.bytes;
    }
    if (fixed > SHARED_DEFAULT)
        stop("more than 48 KB of shared arrays", me);
    if (total + fixed > SHARED_MAX)
        stop("more than 227 KB of shared memory", me);
    arrays.push_back({ site, fresh_memory(bytes), bytes, true });
    return arrays.back().p;
}

bool shared_contains(const void *p, size_t bytes)
{
    const char *b = static_cast<const char *>(p);

    for (const array &a : arrays)
        if (b >= a.p && b + bytes <= a.p + a.bytes)
            return true;
    return dynamic.p && b >= dynamic.p && b + bytes <= dynamic.p + dynamic.bytes;
}

} // namespace cuemu
