/* gzip and zstd files, unpacked as a stream: members or frames one after the other. */
#ifndef CONVERT_UNPACK_H
#define CONVERT_UNPACK_H
#include "base/err.h"

struct unpack;
struct unpack_step {
    const char *in; /* [nin], what is taken is taken off */
    size_t nin;
    char *out; /* [nout], what is filled is taken off */
    size_t nout;
    const char *why; /* of damage */
};

int unpack_is(const char *head, size_t n) LOCAL; /* Do these bytes begin a packed file? */
/* By the first bytes of a file: *u NULL if it is none of these. E_INPUT: this build cannot read it.
 */
enum status unpack_open(struct unpack **u, const char *head, size_t n, struct err *e) LOCAL;
const char *unpack_name(const struct unpack *u) LOCAL; /* "gzip" */
/* Does what can be done with these. 1: inside a member; 0: at its end; -1: damaged. */
int unpack_step(struct unpack *u, struct unpack_step *s) LOCAL;
void unpack_close(struct unpack *u) LOCAL; /* NULL is fine */
#endif
