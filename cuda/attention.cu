#include "cuda/attention.h"
#include "cuda/slots.h"

enum { HEAD_MAX = 256, DELTA_THREADS = 128, DELTA_LANES = 8 }; /* lanes that share a head */

/* Whether the tensor cores' kernels take this shape, if the operands are wide. */
static bool is_tiled(const struct attention_shape *s, enum dtype t)
{
    return (t == BF16 || t == F16) && (s->K == 64 || s->K == 128);
}

static struct attention_call call_of(const struct attention_shape *s, struct operand qq,
                                     struct operand k, struct operand v, struct operand lse,
                                     dptr qplace, dptr qstart, dptr kplace)
{
    struct attention_call c = {};
    BUG_IF(s->K > HEAD_MAX || s->K % 2 || s->H % s->G);
    BUG_IF(k.t != qq.t || v.t != qq.t);
    c.s = *s;
    c.q = qq.p.p;
    c.k = k.p.p;
    c.v = v.p.p;
    c.lse = elements<float>(lse);
    c.qplace = values<const int32_t>(qplace);
    c.qstart = values<const int32_t>(qstart);
    c.kplace = values<const int32_t>(kplace);
    return c;
}

void cuda_attention(struct queue *q, struct operand o, struct operand lse, struct operand qq,
                    struct operand k, struct operand v, dptr qplace, dptr qstart, dptr kplace,
                    const struct attention_shape *s, int merge, dptr scratch)
{
    struct attention_call c = call_of(s, qq, k, v, lse, qplace, qstart, kplace);
    (void)scratch;
    BUG_IF(o.t != qq.t);
    c.o = o.p.p;
    c.more = merge;
    if (is_tiled(s, qq.t) && is_wide(qq, s->ldq) && is_wide(k, s->ldkv) && is_wide(v, s->ldkv) &&
        is_wide(o, s->ldo)) {
        attention_forward_tiled(q, &c, qq.t);
    } else {
        attention_forward_plain(q, &c, qq.t);
    }
}

void cuda_attention_grad(struct queue *q, struct operand dq, struct operand dk, struct operand dv,
                         struct operand dout, struct operand qq, struct operand k, struct operand v,
                         struct operand lse, struct operand delta, dptr qplace, dptr qstart,
                         dptr kplace, const struct attention_shape *s, int add, dptr scratch)
{
    struct attention_call c = call_of(s, qq, k, v, lse, qplace, qstart, kplace);
    (void)scratch;
    BUG_IF(dq.t != qq.t || dk.t != qq.t || dv.t != qq.t || dout.t != qq.t);
    c.dout = dout.p.p;
    c.dq = dq.p.p;
    c.dk = dk.p.p;
    c.dv = dv.p.p;
    c.delta = elements<float>(delta);
    c.more = add;
    if (is_tiled(s, qq.t) && is_wide(qq, s->ldq) && is_wide(dq, s->ldq) && is_wide(k, s->ldkv) &&
        is_wide(v, s->ldkv) && is_wide(dk, s->ldkv) && is_wide(dv, s->ldkv) &&
        is_wide(dout, s->ldo)) {
        attention_grad_tiled(q, &c, qq.t);
    } else {
        attention_grad_plain(q, &c, qq.t);
    }
}

size_t cuda_attention_scratch(const struct attention_shape *s, enum dtype t, int threads)
{
    (void)s;
    (void)t;
    (void)threads;
    return 0;
}

/* A head's elements go to DELTA_LANES lanes in pieces of N. */
template <class T, int N> struct alignas(N * sizeof(T)) delta_piece {
    T x[N];
};

template <class T, int N>
static __global__ void __launch_bounds__(DELTA_THREADS)
    attention_delta_kernel(float *delta, const T *o, const T *dout, struct attention_shape s)
{
    typedef struct delta_piece<T, N> P;
    const int64_t tokens = (int64_t)s.B * s.Tq,
                  i = ((int64_t)blockIdx.x * DELTA_THREADS + threadIdx.x) / DELTA_LANES;
    const int64_t token = i / s.H, h = i % s.H, at = token * s.ldo + h * s.K;
    float sum = 0;
    if (token < tokens) {
        for (int d = (int)(threadIdx.x % DELTA_LANES) * N; d < s.K; d += DELTA_LANES * N) {
            const P a = *reinterpret_cast<const P *>(o + at + d),
                    b = *reinterpret_cast<const P *>(dout + at + d);
#pragma unroll
            for (int n = 0; n < N; n++) {
                sum += attention_float(a.x[n]) * attention_float(b.x[n]);
            }
        }
    }
#pragma unroll
    for (int n = DELTA_LANES / 2; n > 0; n /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, n);
    }
    if (token < tokens && threadIdx.x % DELTA_LANES == 0) {
        delta[h * tokens + token] = sum;
    }
}

template <class T>
static void queue_delta(struct queue *q, struct operand delta, struct operand o,
                        struct operand dout, const struct attention_shape *s)
{
    enum { N = 16 / sizeof(T) };
    const bool wide = is_wide(o, s->ldo) && is_wide(dout, s->ldo) && s->K % N == 0;
    const dim3 grid((unsigned)ceil_div((int64_t)s->B * s->Tq * s->H * DELTA_LANES, DELTA_THREADS));
    void (*kernel)(float *, const T *, const T *, struct attention_shape) =
        wide ? attention_delta_kernel<T, N> : attention_delta_kernel<T, 1>;
    LAUNCH(kernel, grid, dim3(DELTA_THREADS), 0, q->stream, elements<float>(delta), elements<T>(o),
           elements<T>(dout), *s);
    cuda_check(cudaGetLastError(), "attention_delta");
}

void cuda_attention_delta(struct queue *q, struct operand delta, struct operand o,
                          struct operand dout, const struct attention_shape *s)
{
    with_element(o.t, "attention_delta",
                 [&](auto e) { queue_delta<typename decltype(e)::type>(q, delta, o, dout, s); });
}
