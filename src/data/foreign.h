/* Names the format of a file that is not what was asked for, so that a message can say the cure. */
#ifndef DATA_FOREIGN_H
#define DATA_FOREIGN_H
#include "base/types.h"

enum { FOREIGN_HEAD = 4096 }; /* bytes of a file that are looked at */

struct foreign {
    const char *what; /* "a Megatron index (.idx)" */
    const char *cure; /* how to make a token file of it */
    int is_raw;       /* nothing known: may be a raw stream of tokens */
    int is_text;
};

/* head: the first n bytes of a file of `size` bytes, n = min(size, FOREIGN_HEAD). */
struct foreign foreign_look(const void *head, size_t n, int64_t size) LOCAL;
#endif
