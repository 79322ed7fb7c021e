/* Learning-rate schedules (formulas: doc/INPUT.md, lr_schedule). */
#ifndef OPTIM_LR_H
#define OPTIM_LR_H
#include "input/config.h"
/* Rate of update i = 1, 2, ... */
double lr_at(const struct config *c, int64_t i) LOCAL;
#endif
