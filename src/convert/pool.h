/* Threads that encode batches. The caller is one of them, when it has nothing else to do. */
#ifndef CONVERT_POOL_H
#define CONVERT_POOL_H
#include "convert/encode_batch.h"

struct work {
    struct batch batch;
    struct encoded r;
    int done; /* of pool.c: see pool_is_done() */
};

struct pool;
/* threads >= 1, the caller counted; room: how many may wait. */
struct pool *pool_open(const struct encode_how *how, int threads, int room) LOCAL;
/* Ends after all that was put is done. */
void pool_close(struct pool *p) LOCAL;
void pool_put(struct pool *p, struct work *w) LOCAL; /* w stays the caller's; to be encoded */
int pool_is_done(struct pool *p, const struct work *w) LOCAL;
void pool_wait(struct pool *p, const struct work *w) LOCAL; /* until it is done */
int pool_help(struct pool *p) LOCAL; /* the caller encodes one; 0: none waits */
#endif
