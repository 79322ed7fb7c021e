/* The recorder: the last actions of this rank, printed by die(). */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H
#include "base/types.h"
/* what: a string that lives for ever */
void trace_note(const char *what, int a, int b, int64_t step) LOCAL;
/* The last `last` notes on stderr. */
void trace_print(int last) LOCAL;
#endif
