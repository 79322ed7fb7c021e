/* Batches that are encoded by other ranks. Rank 0 hands them out and takes the results, each rank's
 * in the order given; nothing is received of "any" rank. */
#ifndef CONVERT_PEERS_H
#define CONVERT_PEERS_H
#include "convert/pool.h"
#include "parallel/comm.h"

/* ---- rank 0 ---- */

struct peers;
/* window: batches that may be with one rank. */
struct peers *peers_open(struct comm *world, int window) LOCAL;
void peers_put(struct peers *p, int rank, struct work *w) LOCAL; /* w stays the caller's */
/* Moves what can be moved; w->done of what came back is 1. 1: something moved. */
int peers_poll(struct peers *p) LOCAL;
/* All is back: the others return from peers_serve(). */
void peers_close(struct peers *p) LOCAL;

/* ---- the others ---- */

/* Encodes what rank 0 sends, until it closes. */
void peers_serve(struct comm *world, struct pool *pool, int window) LOCAL;
#endif
