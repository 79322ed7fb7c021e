/* The grammar of a Fortran namelist (doc/INPUT.md says it for users). Every assignment goes to
 * reading_assign. */
#ifndef INPUT_NAMELIST_H
#define INPUT_NAMELIST_H
#include "input/reading.h"

/* A whole deck. s must outlive the complaints and marks of r. */
void namelist_read(struct reading *r, const struct source *s) LOCAL;
/* s->text is "group.key=value" or "group.key(2)=value". */
void namelist_read_set(struct reading *r, const struct source *s) LOCAL;
#endif
