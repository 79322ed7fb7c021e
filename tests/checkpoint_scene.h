/* A model's tensors with known values, cut as some rank of some layout would hold them. */
#ifndef TESTS_CHECKPOINT_SCENE_H
#define TESTS_CHECKPOINT_SCENE_H
#include "checkpoint/checkpoint.h"

struct layout {
    int tp, pp, dp;
    int64_t cut; /* pieces have at most this many elements */
};

struct scene { /* all pieces of one or more ranks */
    struct params *ps;
    int nps;
    struct piece *piece;
    int n;
    void **memory; /* [n] */
};

extern const char scene_deck[]; /* the input that such a model would come from */
struct dims scene_dims(int tp) LOCAL;
/* salt: another one is another model state. index: in the whole tensor. */
double scene_value(int kind, int number, int64_t index, uint64_t salt) LOCAL;
void scene_put(struct operand o, int64_t i, double x) LOCAL;
/* What rank (tp_rank, stage, dp_rank) holds: its slice is every dp-th piece, written where params
 * say so. all: the other slices too, not written. */
void scene_add_rank(struct scene *s, const struct layout *l, int tp_rank, int stage, int dp_rank,
                    enum dtype t, int all) LOCAL;
struct scene scene_whole(const struct layout *l, enum dtype t) LOCAL; /* every rank's slice */
/* Padding becomes NaN, so that one which is saved is noticed. */
void scene_fill(struct scene *s, uint64_t salt) LOCAL;
/* As filled, padding 0. */
int scene_holds(const struct scene *s, uint64_t salt) LOCAL;
void scene_free(struct scene *s) LOCAL;
#endif
