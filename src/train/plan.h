/* What a person sees before anything runs: the screen at start, --check and --plan. */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H
#include "train/run.h"

void plan_print_screen(const struct run *r) LOCAL; /* one screen before the first step */
/* pretrain --check / --plan DECK [--ranks N [--ranks-per-node R]]: no MPI. 0: not given. Prints;
 * exit code as interface.md says. */
struct plan_request {
    const char *deck;
    char *const *sets;
    int nsets, ranks, ranks_per_node;
};
enum status plan_check(const struct plan_request *q, struct err *e) LOCAL;
enum status plan_table(const struct plan_request *q, struct err *e) LOCAL;
#endif
