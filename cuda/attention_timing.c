#include "cuda/attention_timing.h"

#include "base/arena.h"
#include "cuda/slots.h"

enum { RUNS = 5, GAP = 256 };

/* One attention call: rows of q, k, v and of their gradients as in the layers. */
struct bench {
    struct queue *q;
    const struct cudnn_calls *calls;
    const struct cudnn_attention *plans;
    struct attention_shape s;
    enum dtype t;
    char *base;
    size_t bytes;
    struct attention_memory m;
    dptr place, start;
    cudaEvent_t from, to;
};

/* While base is NULL this only counts. */
static dptr take(struct bench *b, size_t bytes)
{
    dptr p = { b->base ? b->base + b->bytes : NULL };

    b->bytes += (bytes + GAP - 1) / GAP * GAP;
    return p;
}

static void lay_out(struct bench *b)
{
    const struct attention_shape *s = &b->s;
    size_t tokens = (size_t)s->B * (size_t)s->Tq, element = dtype_size(b->t);
    size_t q = tokens * (size_t)s->ldq * element, kv = tokens * (size_t)s->ldkv * element;
    size_t o = tokens * (size_t)s->ldo * element;
    size_t own = cuda_attention_scratch(s, b->t, 1), theirs = b->calls->scratch(b->plans);

    b->bytes = 0;
    b->m.q = take(b, q);
    b->m.k = take(b, kv);
    b->m.v = take(b, kv);
    b->m.o = take(b, o);
    b->m.dout = take(b, o);
    b->m.dq = take(b, q);
    b->m.dk = take(b, kv);
    b->m.dv = take(b, kv);
    b->m.lse = take(b, tokens * (size_t)s->H * sizeof(float));
    b->m.delta = take(b, tokens * (size_t)s->H * sizeof(float));
    b->place = take(b, tokens * sizeof(int32_t));
    b->start = take(b, tokens * sizeof(int32_t));
    b->m.scratch = take(b, own > theirs ? own : theirs);
}

/* Inputs: bytes 0x3c are small finite numbers in both types. Places: 0, 1, ... in each sequence. */
static void fill(struct bench *b)
{
    const struct attention_shape *s = &b->s;
    int64_t tokens = (int64_t)s->B * s->Tq;
    size_t bytes = (size_t)tokens * sizeof(int32_t);
    int32_t *place = mem_take(bytes);

    for (int64_t i = 0; i < tokens; i++)
        place[i] = (int32_t)(i % s->Tq);
    cuda_check(cudaMemsetAsync(b->base, 0x3c, b->bytes, b->q->stream), "attention timing");
    cuda_check(cudaMemsetAsync(b->start.p, 0, bytes, b->q->stream), "attention timing");
    cuda_check(cudaMemcpyAsync(b->place.p, place, bytes, cudaMemcpyHostToDevice, b->q->stream),
               "attention timing");
    cuda_check(cudaStreamSynchronize(b->q->stream), "attention timing");
    mem_give(place);
}

static void run_own(struct bench *b)
{
    const struct attention_memory *m = &b->m;
    struct operand q = { m->q, b->t }, k = { m->k, b->t }, v = { m->v, b->t }, o = { m->o, b->t };
    struct operand dq = { m->dq, b->t }, dk = { m->dk, b->t }, dv = { m->dv, b->t };
    struct operand dout = { m->dout, b->t }, lse = { m->lse, F32 }, delta = { m->delta, F32 };

    cuda_attention(b->q, o, lse, q, k, v, b->place, b->start, b->place, &b->s, 0, m->scratch);
    cuda_attention_delta(b->q, delta, o, dout, &b->s);
    cuda_attention_grad(b->q, dq, dk, dv, dout, q, k, v, lse, delta, b->place, b->start, b->place,
                        &b->s, 0, m->scratch);
}

static void run_cudnn(struct bench *b)
{
    b->calls->forward(b->plans, b->q->stream, &b->m);
    b->calls->grad(b->plans, b->q->stream, &b->m);
}

/* The first run is not counted. */
static double shortest(struct bench *b, void (*run)(struct bench *b))
{
    double best = 0;

    for (int i = 0; i <= RUNS; i++) {
        float ms = 0;

        cuda_check(cudaEventRecord(b->from, b->q->stream), "attention timing");
        run(b);
        cuda_check(cudaEventRecord(b->to, b->q->stream), "attention timing");
        cuda_check(cudaEventSynchronize(b->to), "attention timing");
        cuda_check(cudaEventElapsedTime(&ms, b->from, b->to), "attention timing");
        if (i == 1 || (i > 1 && ms < best))
            best = ms;
    }
    return best;
}

enum status attention_time(struct attention_timing *t, struct queue *q,
                           const struct cudnn_calls *calls, const struct cudnn_attention *plans,
                           const struct attention_shape *s, enum dtype type, struct err *e)
{
    struct bench b = { .q = q, .calls = calls, .plans = plans, .s = *s, .t = type };
    void *base = NULL;

    lay_out(&b);
    if (cudaMalloc(&base, b.bytes) != cudaSuccess) {
        cudaGetLastError(); /* said here; later calls are not to see it */
        return err_set(e, E_RESOURCE, "no %zu MiB of device memory to time attention in",
                       b.bytes >> 20);
    }
    b.base = base;
    lay_out(&b);
    fill(&b);
    cuda_check(cudaEventCreate(&b.from), "attention timing");
    cuda_check(cudaEventCreate(&b.to), "attention timing");
    t->own = shortest(&b, run_own);
    t->cudnn = shortest(&b, run_cudnn);
    cuda_check(cudaEventDestroy(b.from), "attention timing");
    cuda_check(cudaEventDestroy(b.to), "attention timing");
    cuda_check(cudaFree(base), "attention timing");
    return OK;
}
