/* The queue of the two CPU backends, whose work is done when the call returns, and the slots that
 * both share. */
#ifndef COMPUTE_QUEUE_H
#define COMPUTE_QUEUE_H
#include "compute/ops.h"

struct queue {
    int threads;
    float *work; /* a backend's own, taken with the queue, given with it; or NULL */
};

/* A loop over the parts 0 .. q->threads-1 of some work, one thread each. What a part holds depends
 * on shapes and q->threads only. */
#define QUEUE_PRAGMA(text) _Pragma(#text)
#define QUEUE_EACH_PART(part)                                                                      \
    QUEUE_PRAGMA(omp parallel for num_threads(q->threads) schedule(static, 1) if (q->threads > 1)) \
    for (int part = 0; part < q->threads; part++)

/* The part's share of 0 .. n-1 in units of `grain`: first .. first+count-1. */
struct queue_share {
    int64_t first, count;
};
static inline struct queue_share queue_share(const struct queue *q, int part, int64_t n,
                                             int64_t grain)
{
    int64_t units = ceil_div(n, grain);
    int64_t from = min_i64(n, units * part / q->threads * grain);
    int64_t to = min_i64(n, units * (part + 1) / q->threads * grain);
    return (struct queue_share){ from, to - from };
}

enum status queue_create(struct queue **q, int threads, int local_rank, struct err *e) LOCAL;
void queue_free(struct queue *q) LOCAL;
void queue_sync(struct queue *q) LOCAL;
void queue_upload(struct queue *q, dptr dst, const void *src, size_t bytes) LOCAL;
void queue_download(struct queue *q, void *dst, dptr src, size_t bytes) LOCAL;
void queue_copy(struct queue *q, dptr dst, dptr src, size_t bytes) LOCAL;
void queue_zero(struct queue *q, dptr dst, size_t bytes) LOCAL;
void queue_convert(struct queue *q, struct operand dst, struct operand src, int64_t n) LOCAL;
#endif
