#include "base/arena.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static atomic_llong requests;

void arena_measure(struct arena *a, const char *name, const struct memory *from)
{
    *a = (struct arena){ .name = name, .from = from };
}

/* size bytes that begin at a multiple of HUGE_PAGE, or NULL. */
static char *map_huge(size_t size)
{
    size_t all = size + HUGE_PAGE;
    char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t head;

    if (p == MAP_FAILED)
        return NULL;
    head = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (head)
        munmap(p, head);
    munmap(p + head + size, all - head - size);
    madvise(p + head, size, MADV_HUGEPAGE); /* advice only: may fail */
    return p + head;
}

static char *map_small(size_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

enum status arena_open(struct arena *a, struct err *e)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (a->peak + page - 1) / page * page;

    BUG_IF(a->base);
    atomic_fetch_add(&requests, 1);
    if (size < page)
        size = page;
    if (a->from)
        a->base = a->from->take(size);
    else
        a->base = size >= 2 * HUGE_PAGE ? map_huge(size) : map_small(size);
    if (!a->base)
        return err_set(e, E_RESOURCE,
                       "cannot get %.1f MiB of %s memory for the arena %s: use more ranks on more "
                       "nodes, or a smaller micro_batch_size or sequence_length",
                       (double)size / (1 << 20), a->from ? a->from->name : "main", a->name);
    a->size = size;
    a->used = a->peak = 0;
    return OK;
}

void arena_close(struct arena *a)
{
    if (a->base && a->from)
        a->from->give(a->base, a->size);
    else if (a->base)
        munmap(a->base, a->size);
    *a = (struct arena){ .name = a->name, .from = a->from };
}

dptr arena_take(struct arena *a, size_t bytes)
{
    size_t size, at = a->used;

    if (a->sealed)
        die(E_BUG, "arena %s: a request of %zu bytes after it was sealed", a->name, bytes);
    if (bytes > SIZE_MAX / 4 || at > SIZE_MAX / 4)
        die(E_BUG, "arena %s: a request of %zu bytes", a->name, bytes);
    size = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (a->base && at + size > a->size)
        die(E_BUG, "arena %s: %zu bytes asked with %zu of %zu in use", a->name, bytes, at, a->size);
    a->used = at + size;
    if (a->used > a->peak)
        a->peak = a->used;
    return dptr_at((dptr){ a->base }, (int64_t)at);
}

size_t arena_mark(const struct arena *a)
{
    return a->used;
}

void arena_rewind(struct arena *a, size_t mark)
{
    BUG_IF(mark > a->used);
    a->used = mark;
}

void arena_seal(struct arena *a)
{
    a->sealed = 1;
}

void *mem_take(size_t bytes)
{
    return mem_grow(NULL, 0, bytes);
}

void *mem_grow(void *p, size_t old_bytes, size_t new_bytes)
{
    char *q = NULL;

    atomic_fetch_add(&requests, 1);
    if (!p)
        q = calloc(1, new_bytes ? new_bytes : 1);
    else if (new_bytes <= PTRDIFF_MAX)
        q = realloc(p, new_bytes ? new_bytes : 1);
    if (!q)
        die(E_RESOURCE, "out of memory: %zu bytes asked", new_bytes);
    if (p && new_bytes > old_bytes)
        memset(q + old_bytes, 0, new_bytes - old_bytes);
    return q;
}

char *mem_copy_text(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(mem_take(n), s, n);
}

void mem_give(void *p)
{
    free(p);
}

int64_t mem_resident(void)
{
    char text[128] = "";
    long long all = 0, resident = 0;
    int fd = open("/proc/self/statm", O_RDONLY);

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) > 0)
        sscanf(text, "%lld %lld", &all, &resident);
    close(fd);
    return resident * sysconf(_SC_PAGESIZE);
}

int64_t mem_requests(void)
{
    return atomic_load(&requests);
}
