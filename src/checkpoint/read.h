/* What the folder's own files need of the reader. */
#ifndef CHECKPOINT_READ_H
#define CHECKPOINT_READ_H
#include "checkpoint/manifest.h"

/* Every block of every file. */
enum status checkpoint_check_blocks(struct checkpoint *c, struct err *e) LOCAL;
#endif
