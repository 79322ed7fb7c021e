#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include "base/types.h"
double clock_now(void) LOCAL; /* seconds, monotonic */
void clock_sleep(double seconds) LOCAL;
#endif
