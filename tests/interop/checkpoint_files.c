/* usage: checkpoint_files DIR. One model state, saved under three layouts: DIR/one, DIR/many,
 * DIR/float64. */
#include "checkpoint/checkpoint.h"

#include "compute/choose.h"
#include "parallel/comm_mpi.h"
#include "tests/checkpoint_scene.h"

#include <stdio.h>

static const struct {
    const char *name;
    struct layout layout;
    enum dtype t;
} runs[] = {
    { "one", { 1, 1, 1, 1 << 20 }, F32 },
    { "many", { 4, 3, 3, 29 }, F32 },
    { "float64", { 2, 1, 2, 101 }, F64 },
};

static enum status save(struct grid *g, struct queue *q, const char *dir, int i, struct err *e)
{
    static const char tokenizer[] =
        "{\"added_tokens\":[{\"id\":12,\"content\":\"<end>\"}],\"model\":{\"vocab\":{\"a\":0}}}";
    struct scene s = scene_whole(&runs[i].layout, runs[i].t);
    struct checkpoint_scalars scalars = { 3, 96, 3072, 3, 0, { 1024, 3, 1 }, 1 };
    struct checkpoint_texts texts = { scene_deck, tokenizer, sizeof tokenizer - 1, 12, "abc" };
    char run[4096];
    enum status st;

    snprintf(run, sizeof run, "%s/%s", dir, runs[i].name);
    scene_fill(&s, 0);
    st = checkpoint_save(run, g, &ops_ref, q, NULL, s.piece, s.n, &scalars, &texts, e);
    scene_free(&s);
    return st;
}

int main(int argc, char **argv)
{
    struct grid g = { .ranks = 1, .tp = 1, .cp = 1, .dp = 1, .pp = 1 };
    struct queue *q;
    struct err e = { "" };
    enum status st;

    g.world = comm_mpi_start(&argc, &argv);
    st = argc == 2 ? ops_ref.queue_create(&q, 1, 0, &e) : E_INPUT;
    for (int i = 0; i < COUNT_OF(runs) && st == OK; i++)
        st = save(&g, q, argv[1], i, &e);
    if (st != OK)
        fprintf(stderr, "%s\n", e.text);
    comm_mpi_end(g.world);
    return (int)st;
}
