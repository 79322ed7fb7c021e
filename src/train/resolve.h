/* From the deck to an input without open questions: what init_from, the data and the ranks decide
 * is filled in. */
#ifndef TRAIN_RESOLVE_H
#define TRAIN_RESOLVE_H
#include "train/sources.h"

/* Three steps; refusals therefore come in the order input (2), files (3). */
/* dp from the ranks (0: not given, then dp = 0 counts as 1), and the rules. */
enum status resolve_ranks(struct config *c, int ranks, struct err *e) LOCAL;
/* The model's keys: from init_from's config.json, or on a resume from the checkpoint's own input
 * (stored, else NULL); with stored, the rules are checked by the caller, after the comparison. */
enum status resolve_model(struct config *c, const char *stored, struct err *e) LOCAL;
/* vocab_size from the data; ids that the model has no row for. plan, for --check: the data stays
 * open there, but absent files (then it has no sources) are fine, and a vocabulary of 257 is
 * assumed when it was to come from them. Else NULL. */
enum status resolve_data(struct config *c, struct sources *plan, struct err *e) LOCAL;
#endif
