#include "cuda/cudnn_attention.h"

#include "cuda/cudnn_pattern.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Backward may go over the batch in pieces of some sequences, or of one sequence and some key heads
 * with their query heads: the deterministic variant stores the scores of a piece. */
struct piece {
    int sequences, groups;
};

struct cudnn_attention {
    const struct cudnn_device *device;
    struct attention_shape s;
    enum dtype t;
    int deterministic;
    struct piece piece;
    struct cudnn_graph forward_graph, grad_graph;
    struct cudnn_plan forward, grad;
    size_t dq_sum; /* bytes, 0 if deterministic */
};

enum {
    OLDEST = 91002,        /* 9.10.0 and 9.10.1 return wrong results                           */
    OLDEST_UNEVEN = 91501, /* before it sequences of other than whole tiles need a padding mask */
    TILE = 128,
    ALIGN = 256
};
static const int64_t PIECE_AIM = (int64_t)1 << 30, SCRATCH_MOST = (int64_t)5 << 30;

/* ---- limits ---- */

static enum status check_device(const struct cudnn_device *d, const struct attention_shape *s,
                                int deterministic, struct err *e)
{
    int64_t version = (int64_t)cudnnGetVersion();
    int hopper = d->capability == 90, blackwell = d->capability / 10 == 10;

    if (version < OLDEST || (s->Tq % TILE && version < OLDEST_UNEVEN))
        return err_set(e, E_RESOURCE,
                       "cuDNN %d.%d.%d is too old for sequences of %d tokens (%s is needed)",
                       (int)(version / 10000), (int)(version / 100 % 100), (int)(version % 100),
                       s->Tq, s->Tq % TILE ? "9.15.1" : "9.10.2");
    if (!hopper && !blackwell)
        return err_set(e, E_RESOURCE, "cuDNN's attention is used on sm_90 and sm_10x, not on sm_%d",
                       d->capability);
    if (deterministic && !hopper)
        return err_set(e, E_RESOURCE,
                       "cuDNN's gradient of attention is known to repeat on sm_90 only, "
                       "not on sm_%d",
                       d->capability);
    if (s->K > (hopper ? 256 : 128))
        return err_set(e, E_RESOURCE, "cuDNN's attention on sm_%d takes heads of up to %d, not %d",
                       d->capability, hopper ? 256 : 128, s->K);
    return OK;
}

static enum status check_shape(const struct attention_shape *s, enum dtype t, struct err *e)
{
    if (t != BF16 && t != F16)
        return err_set(e, E_RESOURCE, "cuDNN's attention is for bfloat16 and float16, not %s",
                       dtype_name(t));
    if (s->Tq != s->Tk)
        return err_set(e, E_RESOURCE,
                       "cuDNN's attention needs as many queries as keys, not %d and %d", s->Tq,
                       s->Tk);
    if (s->K % 8)
        return err_set(e, E_RESOURCE, "cuDNN's attention needs heads of a multiple of 8, not %d",
                       s->K);
    if (s->ldq % 8 || s->ldkv % 8 || s->ldo % 8)
        return err_set(e, E_RESOURCE,
                       "cuDNN's attention needs rows of a multiple of 8 elements, not of %lld, "
                       "%lld and %lld",
                       (long long)s->ldq, (long long)s->ldkv, (long long)s->ldo);
    return OK;
}

/* ---- plans ---- */

/* Bytes of the scores that the deterministic gradient stores. */
static int64_t score_bytes(const struct attention_shape *s, struct piece p)
{
    int64_t side = ceil_div(s->Tq, TILE) * TILE;

    return (int64_t)p.sequences * p.groups * (s->H / s->G) * side * side * 2;
}

static int smaller_divisor(int n, int d)
{
    do
        d--;
    while (n % d);
    return d;
}

static struct piece choose_piece(const struct attention_shape *s, int deterministic)
{
    struct piece p = { s->B, s->G };

    if (!deterministic)
        return p;
    while (score_bytes(s, p) > PIECE_AIM && p.sequences > 1)
        p.sequences = smaller_divisor(s->B, p.sequences);
    while (score_bytes(s, p) > PIECE_AIM && p.groups > 1)
        p.groups = smaller_divisor(s->G, p.groups);
    return p;
}

static enum status check_scratch(int64_t bytes, struct err *e)
{
    if (bytes > SCRATCH_MOST)
        return err_set(e, E_RESOURCE,
                       "cuDNN's gradient of attention needs %lld MiB of scratch here",
                       (long long)(bytes >> 20));
    return OK;
}

static struct attention_pattern pattern_of(const struct cudnn_attention *a, struct piece p)
{
    const struct attention_shape *s = &a->s;

    return (struct attention_pattern){
        .B = p.sequences,
        .H = (int64_t)p.groups * (s->H / s->G),
        .G = p.groups,
        .S = s->Tq,
        .K = s->K,
        .ldq = s->ldq,
        .ldkv = s->ldkv,
        .ldo = s->ldo,
        .statistics = (int64_t)s->B * s->Tq,
        .type = a->t == BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
        .deterministic = a->deterministic,
    };
}

static enum status build_plans(struct cudnn_attention *a, struct err *e)
{
    struct attention_pattern whole = pattern_of(a, (struct piece){ a->s.B, a->s.G });
    struct attention_pattern part = pattern_of(a, a->piece);
    enum status st = check_scratch(a->deterministic ? score_bytes(&a->s, a->piece) : 0, e);

    if (st != OK)
        return st;
    pattern_forward(&a->forward_graph, &whole);
    st = plan_build(&a->forward, &a->forward_graph, a->device, e);
    if (st != OK) {
        err_prefix(e, "cuDNN has no plan for this attention");
        return st;
    }
    pattern_grad(&a->grad_graph, &part);
    st = plan_build(&a->grad, &a->grad_graph, a->device, e);
    if (st != OK) {
        err_prefix(e, "cuDNN has no plan for the gradient of this attention");
        return st;
    }
    if (!a->deterministic)
        a->dq_sum = (size_t)(part.B * part.H * part.S * part.K) * sizeof(float);
    if (cudnn_attention_scratch(a) > (size_t)SCRATCH_MOST)
        return err_set(e, E_RESOURCE,
                       "cuDNN's gradient of this attention needs %lld MiB of scratch",
                       (long long)(cudnn_attention_scratch(a) >> 20));
    return OK;
}

struct cudnn_attention *cudnn_attention_create(const struct cudnn_device *d,
                                               const struct attention_shape *s, enum dtype t,
                                               int deterministic, struct err *e)
{
    struct cudnn_attention *a;

    if (check_shape(s, t, e) != OK || check_device(d, s, deterministic, e) != OK)
        return NULL;
    a = mem_take(sizeof *a);
    a->device = d;
    a->s = *s;
    a->t = t;
    a->deterministic = deterministic;
    a->piece = choose_piece(s, deterministic);
    if (build_plans(a, e) == OK)
        return a;
    cudnn_attention_free(a);
    return NULL;
}

void cudnn_attention_free(struct cudnn_attention *a)
{
    if (!a)
        return;
    plan_free(&a->forward);
    plan_free(&a->grad);
    graph_free(&a->forward_graph);
    graph_free(&a->grad_graph);
    mem_give(a);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* One ALIGN more: the scratch itself may begin anywhere. */
size_t cudnn_attention_scratch(const struct cudnn_attention *a)
{
    size_t grad = aligned(a->dq_sum) + aligned(a->grad.workspace);
    size_t forward = aligned(a->forward.workspace);

    return (forward > grad ? forward : grad) + ALIGN;
}

void cudnn_attention_describe(const struct cudnn_attention *a, char *text, size_t bytes)
{
    const struct attention_shape *s = &a->s;

    snprintf(
        text, bytes,
        "gradient by %d of %d sequences and %d of %d heads a call%s; workspace %zu + %zu bytes, "
        "scratch %.1f MiB",
        a->piece.sequences, s->B, a->piece.groups * (s->H / s->G), s->H,
        a->deterministic ? ", deterministic" : "", a->forward.workspace, a->grad.workspace,
        (double)cudnn_attention_scratch(a) / (1 << 20));
}

/* ---- calls ---- */

int cudnn_attention_takes(const struct cudnn_attention *a, const struct attention_memory *m)
{
    const dptr rows[] = { m->q, m->k, m->v, m->o, m->dout, m->dq, m->dk, m->dv };
    const dptr statistics[] = { m->lse, m->delta };
    uintptr_t bad = 0;

    (void)a;
    for (int i = 0; i < COUNT_OF(rows); i++)
        bad |= (uintptr_t)rows[i].p % 16;
    for (int i = 0; i < COUNT_OF(statistics); i++)
        bad |= (uintptr_t)statistics[i].p % sizeof(float);
    return !bad;
}

static void *align_scratch(dptr scratch)
{
    return (void *)(((uintptr_t)scratch.p + ALIGN - 1) / ALIGN * ALIGN);
}

static void use_stream(const struct cudnn_attention *a, void *stream)
{
    cudnnStatus_t s = cudnnSetStream(a->device->handle, (cudaStream_t)stream);

    if (s != CUDNN_STATUS_SUCCESS)
        die(E_PEER, "cuDNN cannot use the stream: %s", cudnnGetErrorString(s));
}

/* By-value tensors: read while the call is queued. */
struct constants {
    float scale, minus_infinity, one;
};

void cudnn_attention_forward(const struct cudnn_attention *a, void *stream,
                             const struct attention_memory *m)
{
    struct constants c = { (float)a->s.scale, -INFINITY, 1 };
    const int64_t id[] = { ID_Q, ID_K, ID_V, ID_O, ID_LSE, ID_SCALE, ID_MINUS_INFINITY };
    void *const pointer[] = {
        m->q.p, m->k.p, m->v.p, m->o.p, m->lse.p, &c.scale, &c.minus_infinity
    };

    use_stream(a, stream);
    plan_run(&a->forward, a->device, id, pointer, COUNT_OF(id), align_scratch(m->scratch),
             "attention");
}

/* The same memory from token row `token` and key head `group` on. */
static struct attention_memory memory_at(const struct cudnn_attention *a,
                                         const struct attention_memory *m, int64_t token,
                                         int64_t group)
{
    const struct attention_shape *s = &a->s;
    int64_t element = (int64_t)dtype_size(a->t), head = group * (s->H / s->G);
    int64_t q = (token * s->ldq + head * s->K) * element;
    int64_t kv = (token * s->ldkv + group * s->K) * element;
    int64_t o = (token * s->ldo + head * s->K) * element;
    int64_t statistic = (head * s->B * s->Tq + token) * (int64_t)sizeof(float);

    return (struct attention_memory){
        .q = dptr_at(m->q, q),
        .k = dptr_at(m->k, kv),
        .v = dptr_at(m->v, kv),
        .o = dptr_at(m->o, o),
        .lse = dptr_at(m->lse, statistic),
        .dout = dptr_at(m->dout, o),
        .delta = dptr_at(m->delta, statistic),
        .dq = dptr_at(m->dq, q),
        .dk = dptr_at(m->dk, kv),
        .dv = dptr_at(m->dv, kv),
        .scratch = m->scratch,
    };
}

static void grad_piece(const struct cudnn_attention *a, const struct attention_memory *m)
{
    struct constants c = { (float)a->s.scale, -INFINITY, 1 };
    char *workspace = align_scratch(m->scratch);
    const int64_t id[] = { ID_Q,   ID_K,     ID_V,  ID_O,     ID_LSE,   ID_DOUT,
                           ID_DQ,  ID_DK,    ID_DV, ID_DELTA, ID_SCALE, ID_MINUS_INFINITY,
                           ID_ONE, ID_DQ_SUM };
    void *const pointer[] = { m->q.p,   m->k.p,
                              m->v.p,   m->o.p,
                              m->lse.p, m->dout.p,
                              m->dq.p,  m->dk.p,
                              m->dv.p,  m->delta.p,
                              &c.scale, &c.minus_infinity,
                              &c.one,   workspace + aligned(a->grad.workspace) };

    plan_run(&a->grad, a->device, id, pointer, COUNT_OF(id) - a->deterministic, workspace,
             "gradient of attention");
}

void cudnn_attention_grad(const struct cudnn_attention *a, void *stream,
                          const struct attention_memory *m)
{
    use_stream(a, stream);
    for (int b = 0; b < a->s.B; b += a->piece.sequences) {
        for (int g = 0; g < a->s.G; g += a->piece.groups) {
            struct attention_memory part = memory_at(a, m, (int64_t)b * a->s.Tq, g);

            grad_piece(a, &part);
        }
    }
}

const struct cudnn_calls *cudnn_calls(void)
{
    static const struct cudnn_calls calls = {
        .open = cudnn_device_open,
        .close = cudnn_device_close,
        .create = cudnn_attention_create,
        .free = cudnn_attention_free,
        .scratch = cudnn_attention_scratch,
        .takes = cudnn_attention_takes,
        .forward = cudnn_attention_forward,
        .grad = cudnn_attention_grad,
    };

    return &calls;
}
