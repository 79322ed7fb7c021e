/* Pieces of the optimiser as boxes of whole tensors. */
#ifndef CHECKPOINT_PIECES_H
#define CHECKPOINT_PIECES_H
#include "optim/optim.h"

enum { PIECE_CHUNK = 1 << 20 }; /* elements that are staged at a time */

/* Elements of the piece that exist (a padded tail of the vocabulary does not): the first of its
 * count. */
int64_t piece_real(const struct piece *p) LOCAL;
/* Elements at .. at+n-1 of the piece, all real, as boxes of the global tensor in order. Returns how
 * many. */
int piece_boxes(const struct piece *p, int64_t at, int64_t n, struct box out[BOX_RUN_MAX]) LOCAL;
struct operand piece_operand(const struct piece *p, int kind) LOCAL; /* enum checkpoint_kind */
#endif
