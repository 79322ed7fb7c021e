/* Communicators for buffers in a device's memory: NCCL, or MPI through the host. */
#ifndef PARALLEL_COMM_DEVICE_H
#define PARALLEL_COMM_DEVICE_H
#include "parallel/grid.h"

enum comm_choice { COMM_CHOICE_AUTO, COMM_CHOICE_NCCL, COMM_CHOICE_MPI };
enum { COMM_DEVICE_ID = 16, COMM_DEVICE_KINDS = 6 };

struct comm_wrapped {
    struct comm **at, *host; /* where the device's communicator took the host's place */
    int nccl;
};
struct comm_device {
    struct comm_wrapped wrapped[COMM_DEVICE_KINDS];
    int n;
    char text[320]; /* which is used and why, for the screen; "" for one rank */
};

/* Replace the communicators of g whose buffers are the device's, and *tied unless NULL. id
 * [COMM_DEVICE_ID]: of this rank's device. deterministic [same]: sums of NCCL repeat. E_RESOURCE,
 * alike on all ranks, if NCCL is asked for and cannot be used. */
enum status comm_device_open(struct comm_device *d, struct grid *g, struct comm **tied,
                             const unsigned char *id, enum comm_choice how, int deterministic,
                             struct err *e) COLL(g->world);
/* Free them and put the host's back, also after a failed or no comm_device_open. */
void comm_device_close(struct comm_device *d) COLL(world);
#endif
