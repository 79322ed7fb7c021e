/* Pieces of the optimiser as boxes of whole tensors. */
#ifndef CHECKPOINT_PIECES_H
#define CHECKPOINT_PIECES_H
#include "optim/optim.h"

enum { PIECE_CHUNK = 1 << 20 }; /* elements that are staged at a time */

struct operand piece_operand(const struct piece *p, int kind) LOCAL; /* enum checkpoint_kind */
#endif
