#include "compute/queue.h"

#include <string.h>

enum {
    COPY_GRAIN = 1 << 16
}; /* bytes (convert: elements) below which a second thread does not pay */

enum status queue_create(struct queue **q, int threads, int local_rank, struct err *e)
{
    (void)local_rank;
    if (threads < 1) {
        return err_set(e, E_INPUT, "a compute queue needs at least one thread, not %d", threads);
    }
    *q = mem_take(sizeof **q);
    (*q)->threads = threads;
    return OK;
}

void queue_free(struct queue *q)
{
    if (q) {
        mem_give(q->work);
    }
    mem_give(q);
}

void queue_sync(struct queue *q)
{
    (void)q;
}

void queue_upload(struct queue *q, dptr dst, const void *src, size_t bytes)
{
    (void)q;
    memcpy(dst.p, src, bytes);
}

void queue_download(struct queue *q, void *dst, dptr src, size_t bytes)
{
    (void)q;
    memcpy(dst, src.p, bytes);
}

void queue_copy(struct queue *q, dptr dst, dptr src, size_t bytes)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, (int64_t)bytes, COPY_GRAIN);
        memcpy(dst.p + s.first, src.p + s.first, (size_t)s.count);
    }
}

void queue_zero(struct queue *q, dptr dst, size_t bytes)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, (int64_t)bytes, COPY_GRAIN);
        memset(dst.p + s.first, 0, (size_t)s.count);
    }
}

void queue_convert(struct queue *q, struct operand dst, struct operand src, int64_t n)
{
    if (dst.t == src.t) {
        queue_copy(q, dst.p, src.p, (size_t)n * dtype_size(src.t));
        return;
    }
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, n, COPY_GRAIN);
        dtype_convert(operand_at(dst, s.first).p.p, dst.t, operand_at(src, s.first).p.p, src.t,
                      s.count);
    }
}
