/* The sequences of logits and nll: windows of a token file, or items. */
#ifndef INFER_WINDOWS_H
#define INFER_WINDOWS_H
#include "infer/work.h"

/* Rank 0: opens the one token file, whose ids must be the model's. S: --sequence-length or the
 * model's; B: so many sequences that a pass has about 2,048 tokens, or --batch. */
enum status windows_open(struct work *w, struct err *e) LOCAL;
/* Rank 0: S and B of the items. */
enum status windows_of_items(struct work *w, struct err *e) LOCAL;
/* Sequence k: its tokens; place in it of the first label that is scored, and how many are. */
struct windows_row {
    int64_t tokens, scored, nscored;
};
struct windows_row windows_at(const struct work *w, int64_t k) LOCAL;
/* The unit's rows into w->r.rows. */
enum status windows_fill(struct work *w, int64_t unit, struct err *e) LOCAL;
/* A pass over the units: on the last stage their micro-batches hold what was asked for. */
enum status windows_run(struct work *w, const int64_t *units, int n, struct err *e) COLL(model);
#endif
