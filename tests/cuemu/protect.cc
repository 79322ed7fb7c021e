/* protect.cc - the storage of device blocks, and what a bad address ends with. CUEMU_PROTECT=yes
 * lets only the work of streams into device memory; the sanitizers' variants leave it to them. */
#include "machine.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace cuemu
{
namespace
{

struct mapping {
    char *begin;
    size_t bytes; /* whole pages, a guard page before and after not counted */
};
std::vector<mapping> &mappings = *new std::vector<mapping>;
int depth; /* of work in work */

#if defined CUEMU_ASAN || defined CUEMU_TSAN
constexpr bool SANITIZER = true;
#else
constexpr bool SANITIZER = false;
#endif

bool protects()
{
    static int chosen = -1;

    if (chosen < 0) {
        const char *s = getenv("CUEMU_PROTECT");
        if (s && *s && strcmp(s, "yes") && strcmp(s, "no"))
            stop("CUEMU_PROTECT is neither yes nor no");
        chosen = !SANITIZER && s && !strcmp(s, "yes");
    }
    return chosen;
}

size_t page()
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void allow(int access)
{
    for (const mapping &m : mappings)
        if (mprotect(m.begin, m.bytes, access) != 0)
            stop("device memory cannot be protected");
}

void on_fault(int number, siginfo_t *info, void *)
{
    const char *at = static_cast<const char *>(info->si_addr);

    signal(number, SIG_DFL);
    for (const mapping &m : mappings)
        if (depth == 0 && at >= m.begin && at < m.begin + m.bytes)
            stop("host code touches device memory");
    if (current)
        stop("invalid address, or stack overflow of a thread", me);
    /* not ours: the return raises it again */
}

/* On a stack of its own: a thread's may be full. */
void watch_faults()
{
    static bool watched;
    struct sigaction before, ours = {};
    stack_t stack = {};

    if (SANITIZER || watched)
        return;
    watched = true;
    if (sigaction(SIGSEGV, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) ||
        before.sa_handler != SIG_DFL)
        return;
    stack.ss_size = 1 << 16;
    stack.ss_sp = malloc(stack.ss_size);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (stack.ss_sp && sigaltstack(&stack, nullptr) == 0)
        sigaction(SIGSEGV, &ours, nullptr);
}

} // namespace

/* The end of a protected block is at its guard page, but for the alignment of 256. */
void *storage_take(size_t bytes)
{
    void *p;

    watch_faults();
    if (!protects()) {
        if (posix_memalign(&p, 256, bytes) != 0)
            return nullptr;
        raw_fill(p, 0xff, bytes);
        return p;
    }
    size_t rounded = (bytes + 255) & ~(size_t)255;
    size_t pages = (rounded + page() - 1) / page() * page();
    p = mmap(nullptr, pages + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return nullptr;
    mapping m = { static_cast<char *>(p) + page(), pages };
    if (mprotect(m.begin, pages, PROT_READ | PROT_WRITE) != 0)
        return nullptr;
    raw_fill(m.begin, 0xff, pages);
    if (depth == 0)
        mprotect(m.begin, pages, PROT_NONE);
    mappings.push_back(m);
    return m.begin + pages - rounded;
}

void storage_give(void *p)
{
    char *c = static_cast<char *>(p);

    for (size_t i = 0; i < mappings.size(); i++)
        if (c >= mappings[i].begin && c < mappings[i].begin + mappings[i].bytes) {
            munmap(mappings[i].begin - page(), mappings[i].bytes + 2 * page());
            mappings.erase(mappings.begin() + (long)i);
            return;
        }
    free(p);
}

void memory_open()
{
    if (depth++ == 0 && protects())
        allow(PROT_READ | PROT_WRITE);
}

void memory_close()
{
    if (--depth == 0 && protects())
        allow(PROT_NONE);
}

} // namespace cuemu
