/* Copies beside the queue, between a device and `pinned` memory. A lane does its work in order;
 * lanes wait for each other only at points, and the host for none of it. */
#ifndef COMPUTE_LANES_H
#define COMPUTE_LANES_H
#include "base/arena.h"
#include "base/err.h"

enum ops_lane {
    LANE_COMPUTE, /* the queue itself: all operations */
    LANE_OUT,     /* device -> pinned                 */
    LANE_IN,      /* pinned -> device                 */
    LANES
};

struct lanes {
    /* Once for a queue; points are numbered from 0. E_RESOURCE */
    enum status (*open)(struct queue *q, int points, struct err *e);
    void (*copy)(struct queue *q, enum ops_lane l, dptr dst, dptr src,
                 size_t bytes); /* OUT or IN */
    /* The point lies behind what the lane holds now; and no longer where it was marked before. */
    void (*mark)(struct queue *q, enum ops_lane l, int point);
    /* What the lane is given from now on comes after the point; never marked: no wait. */
    void (*wait)(struct queue *q, enum ops_lane l, int point);
};
#endif
