/* What the files of the communication test share. */
#ifndef CUEMU_COMM_H
#define CUEMU_COMM_H
#include "cuda/queue.h"
#include "parallel/comm.h"

extern struct queue *q; /* all work of the device */
extern int over_nccl;

struct comm *device_comm_create(struct comm *host, int tags);
void device_comm_destroy(struct comm *c);

dptr device_take(size_t bytes);
void device_give(dptr d);
void upload(dptr to, const void *from, size_t bytes);
void download(void *to, dptr from, size_t bytes); /* and waits for it */
static inline dptr at(void *p)
{
    return (dptr){ p };
}

/* Elements of any type, between -2 and 2 or as integers; their sums are not exact. */
void fill(void *x, enum dtype t, int64_t n, uint64_t seed);
/* ranks: how many were summed; 0: nothing was, and all bits must be the same */
int same(const void *x, const void *y, enum dtype t, int64_t n, int ranks);

/* comm_flights.c */
enum { FLIGHTS = 30 };
int messages_hold(struct comm *c);
/* Collectives of three communicators and a ring of messages, all started before any is waited for;
 * every rank waits in an order of its own. */
int flights_hold(struct comm **on, struct comm **host, int round);
/* What goes into a pipeline comes out at the other end, forward and backward. */
int pipeline_holds(struct comm *pp, struct comm *tp, struct comm *grad, const char *schedule);
#endif
