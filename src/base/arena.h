/* Memory. Arenas hold all that a step touches; mem_* is for lists and tables of the set-up.
 * An arena without a base measures: place everything once, open it at the measured size,
 * place again. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "base/err.h"

enum { ARENA_ALIGN = 64 };

/* Another kind of memory than the process's own: a GPU's, or pinned for it. */
struct memory {
    const char *name;
    void *(*take)(size_t bytes); /* zeroed, aligned to 256; NULL: there is none left */
    void (*give)(void *p, size_t bytes);
};

struct arena {
    const char *name;
    const struct memory *from; /* NULL: the process's own */
    char *base;                /* NULL while measuring */
    size_t size;               /* bytes at base        */
    size_t used, peak;
    int sealed; /* takes are bugs       */
};

void arena_measure(struct arena *a, const char *name, const struct memory *from) LOCAL;
/* Allocate a->peak bytes, zeroed, in one piece (own memory: page-aligned, huge pages advised) and
 * rewind to 0.
 * E_RESOURCE if it cannot be had. */
enum status arena_open(struct arena *a, struct err *e) LOCAL;
void arena_close(struct arena *a) LOCAL;
/* bytes rounded up to ARENA_ALIGN; {NULL} while measuring; dies past the end. */
dptr arena_take(struct arena *a, size_t bytes) LOCAL;
static inline void *arena_take_host(struct arena *a, size_t bytes)
{
    return arena_take(a, bytes).p;
}
size_t arena_mark(const struct arena *a) LOCAL;
void arena_rewind(struct arena *a, size_t mark) LOCAL;
void arena_seal(struct arena *a) LOCAL;

/* Set-up memory: zeroed; dies with E_RESOURCE when there is none. */
void *mem_take(size_t bytes) LOCAL;
/* The new part is zeroed; p may be NULL. */
void *mem_grow(void *p, size_t old_bytes, size_t new_bytes) LOCAL;
char *mem_copy_text(const char *s) LOCAL;
void mem_give(void *p) LOCAL; /* NULL is fine */
/* Bytes of this process in memory now; 0 where the system does not tell. */
int64_t mem_resident(void) LOCAL;
/* Calls of mem_take, mem_grow, arena_open so far: a step makes none. */
int64_t mem_requests(void) LOCAL;
#endif
