/* usage: checkpoint DIR. Save under one layout of these ranks, load under another; a failure of one
 * rank. */
#include "checkpoint/checkpoint.h"

#include "base/arena.h"
#include "base/file.h"
#include "compute/choose.h"
#include "ranks.h"
#include "tests/checkpoint_scene.h"

#include <sys/resource.h>

static const struct layout layouts[] = {
    { 1, 1, 1, 61 }, { 1, 1, 2, 61 }, { 2, 1, 1, 1 << 20 }, { 1, 2, 1, 37 },      { 2, 2, 1, 61 },
    { 2, 1, 2, 71 }, { 1, 2, 2, 53 }, { 4, 1, 1, 61 },      { 1, 1, 4, 1 << 20 },
};

static struct comm *world;
static struct queue *queue;
static const char *dir;

static struct grid grid_of(const struct layout *l)
{
    struct grid g;
    struct err e = { "" };

    if (grid_create(&g, world, l->tp, 1, l->dp, l->pp, l->tp > 2 ? l->tp / 2 : 1, &e) != OK)
        die(E_BUG, "%s", e.text);
    return g;
}

static struct scene scene_of(const struct grid *g, const struct layout *l, int all)
{
    struct scene s = { 0 };

    scene_add_rank(&s, l, g->tp_rank, g->pp_rank, g->dp_rank, F32, all);
    return s;
}

static enum status save(const struct layout *l, const char *run, int64_t step, uint64_t salt,
                        struct err *e)
{
    struct grid g = grid_of(l);
    struct scene s = scene_of(&g, l, 1);
    struct checkpoint_scalars scalars = { step, step * 8, step * 64, step, 0, { 1024, 3, 1 }, 1 };
    struct checkpoint_texts texts = { "&run\n/\n", NULL, 0, -1, NULL };
    enum status st;

    scene_fill(&s, salt);
    e->text[0] = 0;
    st = checkpoint_save(run, &g, &ops_ref, queue, s.ps, s.piece, s.n, &scalars, &texts, e);
    scene_free(&s);
    grid_free(&g);
    return st;
}

static int load(const struct layout *l, const char *place, char digest[33], struct err *e)
{
    struct grid g = grid_of(l);
    struct scene s = scene_of(&g, l, 0);
    struct checkpoint c;
    int good = checkpoint_open(&c, place, e) == OK;

    digest[0] = 0;
    if (good) {
        good = checkpoint_load(&c, &ops_ref, queue, s.piece, s.n, e) == OK && scene_holds(&s, 0) &&
               checkpoint_digest(&c, digest, e) == OK;
        checkpoint_close(&c);
    }
    scene_free(&s);
    grid_free(&g);
    return good;
}

static void test_layout(const struct layout *l, char first[33])
{
    char run[512], place[600], digest[33];
    struct err e;
    int good = 1;

    snprintf(run, sizeof run, "%s/tp%d-pp%d-dp%d", dir, l->tp, l->pp, l->dp);
    snprintf(place, sizeof place, "%s/step_00000002", run);
    ranks_ok(save(l, run, 2, 0, &e) == OK, "tp %d pp %d dp %d: saved %s", l->tp, l->pp, l->dp,
             e.text);
    comm_barrier(world);
    for (int i = 0; i < COUNT_OF(layouts); i++)
        if (layouts[i].tp * layouts[i].pp * layouts[i].dp == world->size) {
            good &= load(&layouts[i], place, digest, &e);
            if (!first[0])
                strcpy(first, digest);
            good &= strcmp(first, digest) == 0;
        }
    ranks_ok(good, "loads into every layout, one digest %s", e.text);
}

/* One rank may not write more than a few bytes: all ranks say so and nothing is left. */
static void test_failure(const struct layout *l, int culprit)
{
    struct rlimit was, small;
    struct err e;
    char run[512], path[600], name[32];
    enum status st;
    char **names;
    int n = -1;

    snprintf(run, sizeof run, "%s/failure", dir);
    snprintf(name, sizeof name, "rank_%05d.h5", culprit);
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = 6000;
    if (world->rank == culprit)
        setrlimit(RLIMIT_FSIZE, &small);
    st = save(l, run, 4, 0, &e);
    setrlimit(RLIMIT_FSIZE, &was);
    ranks_ok(st == E_FILE && strstr(e.text, name), "rank %d cannot write: all know it: %s", culprit,
             e.text);
    comm_barrier(world);
    if (file_exists(run) && file_list(run, &names, &n, NULL) == OK)
        mem_give(names);
    ranks_ok(n == 0, "nothing is left");
    ranks_ok(save(l, run, 4, 0, &e) == OK, "the next save holds %s", e.text);
    ranks_ok(save(l, run, 4, 0, &e) == OK, "the same again is kept %s", e.text);
    ranks_ok(save(l, run, 4, 1, &e) == E_FILE && strstr(e.text, "another state"),
             "another state is refused everywhere");
    ranks_ok(save(l, run, 6, 1, &e) == OK, "the next step %s", e.text);
    snprintf(path, sizeof path, "%s/step_00000005.tmp-1", run);
    if (world->rank == 0)
        file_make_dirs(path, NULL);
    {
        struct grid g = grid_of(l);

        e.text[0] = 0;
        checkpoint_clean(run, &g);
        ranks_ok(!file_exists(path), "stale folders are removed");
        ranks_ok(checkpoint_retain(run, &g, 1, 0, &e) == OK, "retention %s", e.text);
        snprintf(path, sizeof path, "%s/step_00000004", run);
        comm_barrier(world);
        ranks_ok(!file_exists(path), "the older one is gone");
        grid_free(&g);
    }
}

int main(int argc, char **argv)
{
    struct err e = { "" };
    char first[33] = "";
    int n = 0;

    world = comm_mpi_start(&argc, &argv);
    dir = argc > 1 ? argv[1] : ".";
    if (ops_ref.queue_create(&queue, 1, 0, &e) != OK)
        die(E_BUG, "%s", e.text);
    for (int i = 0; i < COUNT_OF(layouts); i++)
        n += layouts[i].tp * layouts[i].pp * layouts[i].dp == world->size;
    ranks_plan(world, 2 * n + 9);
    for (int i = 0; i < COUNT_OF(layouts); i++)
        if (layouts[i].tp * layouts[i].pp * layouts[i].dp == world->size)
            test_layout(&layouts[i], first);
    for (int i = 0; i < COUNT_OF(layouts); i++)
        if (layouts[i].tp * layouts[i].pp * layouts[i].dp == world->size) {
            test_failure(&layouts[i], world->size - 1);
            break;
        }
    ops_ref.queue_free(queue);
    comm_mpi_end(world);
    return tap_done();
}
