/* What people see of checkpoints. */
#ifndef CONVERT_SHOW_CHECKPOINT_H
#define CONVERT_SHOW_CHECKPOINT_H
#include "checkpoint/checkpoint.h"

enum status show_checkpoint_list(const char *run_dir,
                                 struct err *e) LOCAL; /* a line each, also of bad ones */
enum status show_checkpoint(const char *dir,
                            struct err *e) LOCAL; /* scalars, layout, files, tensors */
enum status show_checkpoint_digest(const char *dir, struct err *e) LOCAL;
#endif
