/* Gradients against central differences, in float64 on the reference. */
#include <math.h>

#include "cases.h"

static void gradient_linear(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t ldx = d->K + d->pad, ldy = d->N + 2 * d->pad;
    struct operand x = scene_real(s, USE_IN, d->T, d->K, ldx, 1),
                   w = scene_real(s, USE_IN, d->N, d->K, d->K, 1);
    struct operand b = scene_real(s, USE_IN, 1, d->N, d->N, 1),
                   y = scene_real(s, USE_OUT, d->T, d->N, ldy, 1);
    struct operand dy = scene_real(s, USE_IN, d->T, d->N, ldy, 1),
                   dx = scene_real(s, USE_OUT, d->T, d->K, ldx, 1);
    struct operand dw = scene_real(s, USE_INOUT, d->N, d->K, d->K, 0),
                   db = scene_real(s, USE_INOUT, 1, d->N, d->N, 0);
    scene_pair(s, x, dx);
    scene_pair(s, w, dw);
    scene_pair(s, b, db);
    scene_loss(s, y, dy);
    if (s->ops) {
        s->ops->linear(s->q, y, ldy, x, ldx, w, d->T, d->N, d->K, 0);
        s->ops->bias(s->q, y, ldy, b, d->T, d->N);
        s->ops->linear_grad_input(s->q, dx, ldx, dy, ldy, w, d->T, d->N, d->K, 0);
        s->ops->linear_grad_weight(s->q, dw, dy, ldy, x, ldx, d->T, d->N, d->K);
        s->ops->bias_grad(s->q, db, dy, ldy, d->T, d->N);
    }
}

/* flag 1: block norm of x + r, else heads */
static void gradient_rmsnorm(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t wide = d->heads * d->K, ld = wide + d->pad;
    struct operand x = scene_real(s, USE_IN, d->T, wide, ld, 1),
                   w = scene_real(s, USE_IN, 1, d->K, d->K, 1);
    struct operand r = d->flag ? scene_real(s, USE_IN, d->T, wide, ld, 1) : OPERAND_NONE;
    struct operand sum = d->flag ? scene_real(s, USE_OUT, d->T, wide, ld, 1) : x;
    struct operand y = scene_real(s, USE_OUT, d->T, wide, ld, 1),
                   dy = scene_real(s, USE_IN, d->T, wide, ld, 1);
    struct operand rstd = scene_real(s, USE_OUT, d->T, d->heads, d->heads, 1);
    struct operand dx = scene_real(s, USE_OUT, d->T, wide, ld, 1),
                   dw = scene_real(s, USE_INOUT, 1, d->K, d->K, 0);
    scene_pair(s, x, dx);
    scene_pair(s, w, dw);
    if (d->flag) {
        scene_pair(s, r, dx);
    }
    scene_loss(s, y, dy);
    if (s->ops) {
        s->ops->rmsnorm(s->q, y, ld, rstd, sum, x, ld, r, w, d->T, d->heads, d->K, 1e-2);
        s->ops->rmsnorm_grad_input(s->q, dx, ld, OPERAND_NONE, dy, ld, sum, ld, rstd, w, d->T,
                                   d->heads, d->K);
        s->ops->rmsnorm_grad_weight(s->q, dw, dy, ld, sum, ld, rstd, d->T, d->heads, d->K);
    }
}

static void gradient_rope(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t wide = d->heads * d->K, ld = wide;
    int32_t *fill;
    struct operand table = scene_real(s, USE_IN, d->T, d->K, d->K, 1),
                   x = scene_real(s, USE_INOUT, d->T, wide, ld, 1);
    struct operand dy = scene_real(s, USE_IN, d->T, wide, ld, 1),
                   dx = scene_real(s, USE_OUT, d->T, wide, ld, 1);
    dptr position = scene_ints(s, d->T, &fill);
    for (int64_t t = 0; fill && t < d->T; t++) {
        fill[t] = (int32_t)(d->T - 1 - t);
    }
    scene_pair(s, x, dx);
    scene_loss(s, x, dy);
    if (s->ops) {
        s->ops->rope(s->q, x, ld, table, position, d->T, d->heads, d->K, 1);
        s->ops->copy(s->q, dx.p, dy.p, (size_t)(d->T * ld) * dtype_size(s->real));
        s->ops->rope(s->q, dx, ld, table, position, d->T, d->heads, d->K, -1);
    }
}

/* flag 1: the keys come in two pieces, merged */
static void gradient_attention(struct scene *s)
{
    const struct shape *d = s->d;
    struct attention_shape a;
    dptr qplace, qstart, kplace, kstart;
    case_attention_shape(s, &a);
    case_places(s, a.Tq, d->offset, d->N, &qplace, &qstart);
    case_places(s, a.Tk, 0, 0, &kplace, &kstart);
    int64_t tokens = d->T * d->B, keys = d->Tk * d->B, kv = d->G * d->K, wide = d->heads * d->K;
    struct operand q = scene_real(s, USE_IN, tokens, wide, a.ldq, 1),
                   k = scene_real(s, USE_IN, keys, kv, a.ldkv, 1);
    struct operand v = scene_real(s, USE_IN, keys, kv, a.ldkv, 1),
                   o = scene_real(s, USE_OUT, tokens, wide, a.ldo, 1);
    struct operand lse = scene_real(s, USE_OUT, d->heads, tokens, tokens, 1),
                   delta = scene_real(s, USE_OUT, d->heads, tokens, tokens, 1);
    struct operand dout = scene_real(s, USE_IN, tokens, wide, a.ldo, 1),
                   dq = scene_real(s, USE_OUT, tokens, wide, a.ldq, 1);
    struct operand dk = scene_real(s, USE_INOUT, keys, kv, a.ldkv, 0),
                   dv = scene_real(s, USE_INOUT, keys, kv, a.ldkv, 0);
    dptr scratch = scene_scratch(s, ops_ref.attention_scratch(&a, s->real, s->threads));
    scene_pair(s, q, dq);
    scene_pair(s, k, dk);
    scene_pair(s, v, dv);
    scene_loss(s, o, dout);
    int pieces = d->flag ? 2 : 1;
    for (int i = 0; s->ops && i < pieces; i++) {
        int64_t from = a.Tk * i / pieces, skip = from * a.ldkv;
        struct attention_shape piece = a;
        piece.Tk = (int)(d->Tk * (i + 1) / pieces - from);
        s->ops->attention(s->q, o, lse, q, operand_at(k, skip), operand_at(v, skip), qplace, qstart,
                          dptr_at(kplace, 4 * from), &piece, i > 0, scratch);
    }
    for (int i = 0; s->ops && i < pieces; i++) {
        int64_t from = a.Tk * i / pieces, skip = from * a.ldkv;
        struct attention_shape piece = a;
        piece.Tk = (int)(d->Tk * (i + 1) / pieces - from);
        s->ops->attention_delta(s->q, delta, o, dout, &a);
        s->ops->attention_grad(s->q, dq, operand_at(dk, skip), operand_at(dv, skip), dout, q,
                               operand_at(k, skip), operand_at(v, skip), lse, delta, qplace, qstart,
                               dptr_at(kplace, 4 * from), &piece, i > 0, scratch);
    }
}

static void gradient_swiglu(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand gu = scene_real(s, USE_IN, d->T, 2 * d->N, 2 * d->N, 1),
                   h = scene_real(s, USE_OUT, d->T, d->N, d->N, 1);
    struct operand dh = scene_real(s, USE_IN, d->T, d->N, d->N, 1),
                   dgu = scene_real(s, USE_OUT, d->T, 2 * d->N, 2 * d->N, 1);
    scene_pair(s, gu, dgu);
    scene_loss(s, h, dh);
    if (s->ops) {
        s->ops->swiglu(s->q, h, gu, d->T, d->N);
        s->ops->swiglu_grad(s->q, dgu, dh, gu, d->T, d->N);
    }
}

/* Two ranks with N rows each; the second has only K real ones. */
static void gradient_softmax(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand first = scene_real(s, USE_INOUT, d->T, d->N, d->N, 1),
                   second = scene_real(s, USE_INOUT, d->T, d->N, d->N, 1);
    struct operand all = scene_real(s, USE_OUT, 2 * d->T, 3, 3, 1),
                   lse = scene_real(s, USE_OUT, 1, d->T, d->T, 1);
    struct operand loss = scene_typed(s, USE_INOUT, F64, 1, 0),
                   one = scene_typed(s, USE_IN, F64, 1, 1);
    dptr labels = case_labels(s, d->T, d->N + d->K);
    if (!s->ops) {
        scene_poke(&s->buffer[5], s->buffer[5].first, 0, 0, 1);
        for (int64_t i = 0; i < d->T * (d->N - d->K); i++) {
            scene_poke(&s->buffer[1], s->buffer[1].first, i / (d->N - d->K),
                       d->K + i % (d->N - d->K), NAN);
        }
    }
    scene_pair(s, first, first);
    scene_pair(s, second, second);
    scene_loss(s, loss, one);
    if (s->ops) {
        s->ops->softmax_stats(s->q, all, first, labels, d->T, d->N, 0, d->N);
        s->ops->softmax_stats(s->q, operand_at(all, 3 * d->T), second, labels, d->T, d->N, d->N,
                              d->K);
        s->ops->softmax_loss(s->q, loss.p, lse, OPERAND_NONE, all, 2, labels, d->T);
        s->ops->softmax_grad(s->q, first, first, lse, labels, 1, d->T, d->N, 0, d->N);
        s->ops->softmax_grad(s->q, second, second, lse, labels, 1, d->T, d->N, d->N, d->K);
    }
}

static void gradient_embed(struct scene *s)
{
    const struct shape *d = s->d;
    int32_t *fill;
    dptr ids = scene_ints(s, d->T, &fill);
    for (int64_t t = 0; fill && t < d->T; t++) {
        fill[t] = (int32_t)((t * 7) % (d->N + 2));
    }
    struct operand w = scene_real(s, USE_IN, d->N, d->K, d->K, 1),
                   dw = scene_real(s, USE_INOUT, d->N, d->K, d->K, 0);
    struct operand x = scene_real(s, USE_OUT, d->T, d->K, d->K, 1),
                   dx = scene_real(s, USE_IN, d->T, d->K, d->K, 1);
    scene_pair(s, w, dw);
    scene_loss(s, x, dx);
    if (s->ops) {
        s->ops->embed(s->q, x, w, ids, 1, d->N, d->T, d->K);
        s->ops->embed_grad(s->q, dw, dx, ids, 1, d->N, d->T, d->K);
    }
}

static const struct shape linears[] = { { .T = 3, .N = 5, .K = 4, .pad = 1 },
                                        { .T = 17, .N = 3, .K = 7 } };
static const struct shape norms[] = {
    { .T = 3, .heads = 1, .K = 7, .pad = 1, .flag = 1 },
    { .T = 3, .heads = 1, .K = 6 },
    { .T = 2, .heads = 3, .K = 4, .pad = 2 },
};
static const struct shape ropes[] = { { .T = 3, .heads = 2, .K = 6 } };
static const struct shape attentions[] = {
    { .B = 1, .T = 6, .Tk = 6, .heads = 2, .G = 2, .K = 4 },
    { .B = 2, .T = 7, .Tk = 7, .heads = 4, .G = 2, .K = 6, .N = 3, .pad = 1 },
    { .B = 2, .T = 4, .Tk = 7, .heads = 3, .G = 1, .K = 4, .offset = 3 },
};
static const struct shape rings[] = {
    { .B = 1, .T = 6, .Tk = 6, .heads = 2, .G = 2, .K = 4, .flag = 1 },
    { .B = 1, .T = 8, .Tk = 8, .heads = 4, .G = 2, .K = 6, .N = 5, .flag = 1 },
};
static const struct shape gates[] = { { .T = 3, .N = 5 } };
static const struct shape losses[] = { { .T = 4, .N = 5, .K = 3 } };
static const struct shape embeddings[] = { { .T = 9, .N = 4, .K = 3 } };

#define SHAPES(a) a, COUNT_OF(a)
const struct gradient_row gradient_rows[] = {
    { "linear and bias", gradient_linear, SHAPES(linears) },
    { "rmsnorm", gradient_rmsnorm, SHAPES(norms) },
    { "rope", gradient_rope, SHAPES(ropes) },
    { "attention", gradient_attention, SHAPES(attentions) },
    { "attention in two pieces", gradient_attention, SHAPES(rings) },
    { "swiglu", gradient_swiglu, SHAPES(gates) },
    { "softmax and loss", gradient_softmax, SHAPES(losses) },
    { "embedding", gradient_embed, SHAPES(embeddings) },
};
const int gradient_nrows = COUNT_OF(gradient_rows);
