#include "comm.h"

#include <math.h>
#include <string.h>

static struct queue queue;
struct queue *q = &queue;
int over_nccl;

struct comm *device_comm_create(struct comm *host, int tags)
{
    struct err e = { "" };
    struct comm *c = NULL;
    enum status st = over_nccl && host->size > 1 ? comm_nccl_create(&c, host, tags, 1, &e)
                                                 : comm_staged_create(&c, host, tags, &e);

    if (st != OK)
        die(st, "%s", e.text);
    return c;
}

void device_comm_destroy(struct comm *c)
{
    if (over_nccl && c->size > 1)
        comm_nccl_free(c);
    else
        comm_staged_free(c);
}

dptr device_take(size_t bytes)
{
    dptr d;

    cuda_check(cudaMalloc((void **)&d.p, bytes + 1), "cudaMalloc");
    return d;
}

void device_give(dptr d)
{
    cuda_check(cudaFree(d.p), "cudaFree");
}

void upload(dptr to, const void *from, size_t bytes)
{
    cuda_check(cudaMemcpyAsync(to.p, from, bytes, cudaMemcpyHostToDevice, q->stream), "upload");
}

void download(void *to, dptr from, size_t bytes)
{
    cuda_check(cudaMemcpyAsync(to, from.p, bytes, cudaMemcpyDeviceToHost, q->stream), "download");
    cuda_check(cudaStreamSynchronize(q->stream), "download");
}

void fill(void *x, enum dtype t, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = ((uint64_t)i + seed * 0x2545f4914f6cdd1du + 1) * 0x9e3779b97f4a7c15u;
        double v;
        h ^= h >> 31;
        h *= 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
        v = (double)(int64_t)h / (double)((int64_t)1 << 62);
        if (t == I32)
            ((int32_t *)x)[i] = (int32_t)(h >> 36);
        else if (t == I64)
            ((int64_t *)x)[i] = (int64_t)(h >> 8);
        else if (t == F32)
            ((float *)x)[i] = (float)v;
        else if (dtype_is_float(t))
            dtype_convert((char *)x + (size_t)i * dtype_size(t), t, &v, F64, 1);
        else
            ((uint8_t *)x)[i] = (uint8_t)h;
    }
}

int same(const void *x, const void *y, enum dtype t, int64_t n, int ranks)
{
    const char *a = x, *b = y;
    size_t e = dtype_size(t);
    double p, s, most = t == BF16 ? 3e-2 : t == F16 ? 4e-3 : 1e-6;

    if (ranks <= 2 || !over_nccl || !dtype_is_float(t))
        return memcmp(x, y, (size_t)n * e) == 0;
    for (int64_t i = 0; i < n; i++) {
        dtype_convert(&p, F64, a + (size_t)i * e, t, 1);
        dtype_convert(&s, F64, b + (size_t)i * e, t, 1);
        if (!(fabs(p - s) <= most * ranks))
            return 0;
    }
    return 1;
}
