#include "base/arena.h"

#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

/* Exit code of f in a child, without its words. */
static int code_of(void (*f)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        f();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void take_past_end(void)
{
    struct arena a;
    struct err e = { "" };

    arena_measure(&a, "small", NULL);
    arena_take(&a, 100);
    arena_open(&a, &e);
    arena_take(&a, 1 << 20);
}

static void take_sealed(void)
{
    struct arena a;

    arena_measure(&a, "sealed", NULL);
    arena_seal(&a);
    arena_take(&a, 1);
}

static void take_nonsense(void)
{
    struct arena a;

    arena_measure(&a, "negative", NULL);
    arena_take(&a, (size_t)-1);
}

static void take_world(void)
{
    mem_take(SIZE_MAX / 2);
}

static int all_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return 0;
    return 1;
}

static void place(struct arena *a, char *p[3])
{
    size_t mark;

    p[0] = arena_take_host(a, 1);
    mark = arena_mark(a);
    p[1] = arena_take_host(a, 5000);
    arena_rewind(a, mark);
    p[2] = arena_take_host(a, 65);
}

static void test_arena(size_t big)
{
    struct arena a;
    struct err e = { "" };
    char *p[3], *q;

    arena_measure(&a, "test", NULL);
    place(&a, p);
    q = arena_take_host(&a, big);
    tap_ok(!p[0] && !p[1] && !p[2] && !q, "measuring gives no memory");
    tap_ok(a.peak == (5000 + 63 > 128 + big ? 64 + 5056 : 64 + 128 + big), "peak %zu", a.peak);
    tap_ok(arena_open(&a, &e) == OK && a.used == 0, "opened %s", e.text);
    place(&a, p);
    q = arena_take_host(&a, big);
    tap_ok(p[0] == a.base && p[1] == p[0] + 64 && p[2] == p[1] && q == p[2] + 128,
           "placed where it was measured");
    tap_ok((uintptr_t)q % ARENA_ALIGN == 0 && all_zero(q, big), "aligned and zero");
    memset(q, 1, big);
    arena_seal(&a);
    arena_close(&a);
    tap_ok(!a.base && !a.sealed, "closed");
}

static void test_mem(void)
{
    int64_t before = mem_requests();
    char *p = mem_grow(NULL, 0, 10), *t = mem_copy_text("text");

    memset(p, 1, 10);
    p = mem_grow(p, 10, 100000);
    tap_ok(p[9] == 1 && all_zero(p + 10, 99990), "grown with zeros");
    tap_ok(strcmp(t, "text") == 0, "text copied");
    tap_ok(mem_requests() - before == 3, "requests are counted");
    mem_give(p);
    mem_give(t);
    mem_give(NULL);
    p = mem_take(0);
    tap_ok(p != NULL, "nothing is something");
    mem_give(p);
}

int main(void)
{
    struct arena huge;
    struct err e = { "" };

    tap_plan(21);
    test_arena(1000);
    test_arena(8 << 20);
    test_mem();
    arena_measure(&huge, "huge", NULL);
    arena_take(&huge, SIZE_MAX / 8);
    tap_ok(arena_open(&huge, &e) == E_RESOURCE && strstr(e.text, "arena huge"), "%s", e.text);
    tap_ok(code_of(take_past_end) == E_BUG, "past the end dies");
    tap_ok(code_of(take_sealed) == E_BUG, "after the seal dies");
    tap_ok(code_of(take_nonsense) == E_BUG, "a negative size dies");
    tap_ok(code_of(take_world) == E_RESOURCE, "out of memory dies");
    return tap_done();
}
