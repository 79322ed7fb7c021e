/* layers/window with emulated streams: blocks of random slots are written, read and dropped in
 * random order, and each read must see what was written. Found by it (tests/cuemu/window.sh): any
 * wait or mark that is left out. */
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "base/rng.h"
#include "layers/window.h"

enum { SLOTS = 6, MOST = 5, BYTES = 256, FIRST = 192, ACTIONS = 200, READS = (ACTIONS + 1) * MOST };
static const int all_layers[] = { MOST, 1, 2 };
enum state { EMPTY, WRITTEN, HALF_READ };

struct scene {
    struct env e;
    struct window w;
    struct arena device, host;
    int layers;
    enum state state[SLOTS];
    unsigned char value[SLOTS * MOST];
    unsigned char got[READS][BYTES], want[READS];
    int first[READS], reads;
};

static int pick(uint64_t at, int n)
{
    return (int)(rng_u64(7, 1, at) % (uint64_t)n);
}

static void place(struct scene *s)
{
    for (int f = 0; f < WINDOW_FRAMES; f++)
        s->w.frame[f].at = arena_take(&s->device, BYTES);
    s->w.bytes = BYTES;
    s->w.first_bytes = FIRST;
    window_place(&s->w, &s->host);
}

static int open_scene(struct scene *s, struct err *e)
{
    s->e.ops = &ops_cuda;
    window_init(&s->w, SLOTS, s->layers, 3);
    arena_measure(&s->device, "device", ops_cuda.memory);
    arena_measure(&s->host, "host", ops_cuda.pinned);
    place(s);
    if (ops_cuda.queue_create(&s->e.q, 1, 0, e) != OK || arena_open(&s->device, e) != OK ||
        arena_open(&s->host, e) != OK ||
        ops_cuda.lanes->open(s->e.q, 3 + window_points(&s->w), e) != OK)
        return 0;
    place(s);
    return 1;
}

/* As a forward does: a frame is taken one block ahead. */
static void write_slot(struct scene *s, int slot, uint64_t at, int keep)
{
    unsigned char bytes[BYTES];

    window_write(&s->e, &s->w, slot * s->layers);
    for (int i = 0; i < s->layers; i++) {
        int key = slot * s->layers + i;
        if (i + 1 < s->layers)
            window_write(&s->e, &s->w, key + 1);
        s->value[key] = (unsigned char)pick(at * MOST + (uint64_t)i, 256);
        memset(bytes, s->value[key], sizeof bytes);
        for (int f = 0; f < WINDOW_FRAMES; f++)
            if (s->w.frame[f].holds == key)
                ops_cuda.upload(s->e.q, s->w.frame[f].at, bytes, BYTES);
        (keep ? window_save : window_drop)(&s->e, &s->w, key);
    }
    s->state[slot] = keep ? WRITTEN : EMPTY;
}

static void read_slot(struct scene *s, int slot, int drop)
{
    for (int i = s->layers - 1; i >= 0; i--) {
        int key = slot * s->layers + i, f = window_read(&s->e, &s->w, key), n = s->reads++;
        if (i > 0)
            window_fetch(&s->e, &s->w, key - 1);
        s->first[n] = i == 0;
        s->want[n] = s->value[key];
        ops_cuda.download(s->e.q, s->got[n], s->w.frame[f].at, BYTES);
        (drop ? window_drop : window_keep)(&s->e, &s->w, key);
    }
    s->state[slot] = drop ? EMPTY : HALF_READ;
}

static int wrong_reads(const struct scene *s)
{
    int wrong = 0;

    for (int n = 0; n < s->reads; n++)
        for (int i = 0; i < (s->first[n] ? FIRST : BYTES); i++)
            if (s->got[n][i] != s->want[n]) {
                wrong++;
                break;
            }
    return wrong;
}

/* Once settled, nothing touches the homes any more. */
static int homes_rest(struct scene *s)
{
    unsigned char *home = (unsigned char *)s->host.base;
    int changed = 0;

    window_settle(&s->e, &s->w);
    ops_cuda.sync(s->e.q);
    memset(home, 0xaa, s->host.size);
    ops_cuda.lanes->mark(s->e.q, LANE_OUT, 0);
    ops_cuda.lanes->wait(s->e.q, LANE_COMPUTE, 0);
    ops_cuda.sync(s->e.q);
    for (size_t i = 0; i < s->host.size; i++)
        changed += home[i] != 0xaa;
    return changed == 0;
}

static void run_scene(struct scene *s)
{
    struct err e = { "" };

    if (!open_scene(s, &e))
        die(E_BUG, "%s", e.text);
    for (uint64_t n = 0; n < ACTIONS; n++) {
        int slot = pick(3 * n, SLOTS);
        if (s->state[slot] == EMPTY)
            write_slot(s, slot, n, pick(3 * n + 1, 4) > 0);
        else
            read_slot(s, slot, s->state[slot] == HALF_READ || pick(3 * n + 1, 2));
    }
    if (s->state[0] != EMPTY)
        read_slot(s, 0, 1);
    write_slot(s, 0, ACTIONS, 1);
    ops_cuda.sync(s->e.q);
    tap_ok(s->reads > ACTIONS / 3, "%d of %d layers: %d reads", SLOTS, s->layers, s->reads);
    tap_ok(wrong_reads(s) == 0, "%d of them wrong", wrong_reads(s));
    tap_ok(homes_rest(s), "nothing is on its way once settled");
    arena_close(&s->device);
    arena_close(&s->host);
    window_free(&s->w);
    ops_cuda.queue_free(s->e.q);
}

int main(void)
{
    tap_plan(3 * COUNT_OF(all_layers));
    for (int i = 0; i < COUNT_OF(all_layers); i++) {
        struct scene *s = mem_take(sizeof *s);
        s->layers = all_layers[i];
        run_scene(s);
        mem_give(s);
    }
    return tap_done();
}
