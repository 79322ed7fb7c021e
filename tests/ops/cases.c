#include "cases.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* ---- shared inputs ---- */
void case_places(struct scene *s, int64_t n, int64_t offset, int64_t run, dptr *place, dptr *start)
{
    int32_t *p, *b;
    *place = scene_ints(s, n * s->d->B, &p);
    *start = scene_ints(s, n * s->d->B, &b);
    for (int64_t i = 0; p && i < n * s->d->B; i++) {
        int64_t at = offset + i % n,
                shift = i / n * 3; /* documents begin elsewhere in each sequence */
        p[i] = (int32_t)at;
        b[i] = run ? (int32_t)max_i64(0, (at + shift) / run * run - shift) : 0;
    }
}

void case_attention_shape(const struct scene *s, struct attention_shape *a)
{
    const struct shape *d = s->d;
    int64_t kv = d->G * d->K;
    *a = (struct attention_shape){ .B = d->B,
                                   .Tq = (int)d->T,
                                   .Tk = (int)d->Tk,
                                   .H = d->heads,
                                   .G = d->G,
                                   .K = (int)d->K,
                                   .ldq = d->heads * d->K + d->pad,
                                   .ldkv = kv + d->pad,
                                   .ldo = d->heads * d->K + 2 * d->pad,
                                   .scale = 1 / sqrt((double)d->K) };
}

/* Every third label is not counted. */
dptr case_labels(struct scene *s, int64_t T, int64_t V)
{
    int32_t *fill;
    dptr labels = scene_ints(s, T, &fill);
    for (int64_t t = 0; fill && t < T; t++) {
        fill[t] = t % 3 == 2 ? -1 : (int32_t)(rng_u64(3, 1, (uint64_t)t) % (uint64_t)V);
    }
    return labels;
}

static dptr token_ids(struct scene *s, int64_t T, int64_t V)
{
    int32_t *fill;
    dptr ids = scene_ints(s, T, &fill);
    for (int64_t t = 0; fill && t < T; t++) {
        fill[t] = (int32_t)(rng_u64(5, 1, (uint64_t)t) % (uint64_t)V);
    }
    return ids;
}

static dptr scratch_for(struct scene *s, const struct attention_shape *a)
{
    const struct ops *both[] = { &ops_ref, s->tested };
    size_t bytes = 64;
    for (int i = 0; i < COUNT_OF(both); i++) {
        size_t need = both[i]->attention_scratch(a, s->real, s->threads);
        bytes = need > bytes ? need : bytes;
    }
    return scene_scratch(s, bytes);
}

/* ---- memory ---- */
void case_copy(struct scene *s)
{
    int64_t n = s->d->T * s->d->K;
    struct operand x = scene_real(s, USE_IN, 1, n, n, 1), y = scene_real(s, USE_OUT, 1, n, n, 1),
                   z = scene_real(s, USE_OUT, 1, n, n, 1);
    size_t bytes = (size_t)n * dtype_size(s->real);
    if (s->ops) {
        static char host[1 << 16];
        s->ops->copy(s->q, y.p, x.p, bytes);
        s->ops->download(s->q, host, y.p, bytes);
        s->ops->sync(s->q);
        s->ops->upload(s->q, z.p, host, bytes);
        s->ops->zero(s->q, y.p, bytes / 2);
    }
}

void case_convert(struct scene *s)
{
    int64_t n = s->d->T * s->d->K;
    enum dtype narrow = s->real == F16 ? F16 : BF16; /* a device has no float64 */
    struct operand x = scene_typed(s, USE_IN, F32, n, 100),
                   half = scene_typed(s, USE_OUT, narrow, n, 1);
    struct operand wide = scene_typed(s, USE_OUT, s->tested->memory ? F32 : F64, n, 1),
                   back = scene_typed(s, USE_OUT, F32, n, 1);
    if (s->ops) {
        s->ops->convert(s->q, half, x, n);
        s->ops->convert(s->q, wide, half, n);
        s->ops->convert(s->q, back, x, n);
    }
}

/* flag 0: y = a + b, 1: y is a, 2: y is b */
void case_add(struct scene *s)
{
    int64_t n = s->d->T * s->d->K;
    int form = s->d->flag;
    struct operand a = scene_real(s, form == 1 ? USE_INOUT : USE_IN, 1, n, n, 1);
    struct operand b = scene_real(s, form == 2 ? USE_INOUT : USE_IN, 1, n, n, 1);
    struct operand y = form == 0 ? scene_real(s, USE_OUT, 1, n, n, 1) : form == 1 ? a : b;
    if (s->ops) {
        s->ops->add(s->q, y, a, b, n);
    }
}

/* ---- products. flag 1: add; 2: y is F32 beside narrower x and w ---- */
void case_linear(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t ldx = d->K + d->pad, ldy = d->N + 2 * d->pad;
    struct operand x = scene_real(s, USE_IN, d->T, d->K, ldx, 1),
                   w = scene_real(s, USE_IN, d->N, d->K, d->K, 1);
    int add = d->flag & 1;
    enum use use = add ? USE_INOUT : USE_OUT;
    struct operand y = d->flag & 2 ? scene_stat(s, use, d->T, d->N, ldy, 1)
                                   : scene_real(s, use, d->T, d->N, ldy, 1);
    if (s->ops) {
        s->ops->linear(s->q, y, ldy, x, ldx, w, d->T, d->N, d->K, add);
    }
}

void case_linear_grad_input(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t ldx = d->K + d->pad, ldy = d->N + 2 * d->pad;
    struct operand dy = scene_real(s, USE_IN, d->T, d->N, ldy, 1),
                   w = scene_real(s, USE_IN, d->N, d->K, d->K, 1);
    int add = d->flag & 1;
    struct operand dx = scene_real(s, add ? USE_INOUT : USE_OUT, d->T, d->K, ldx, 1);
    if (s->ops) {
        s->ops->linear_grad_input(s->q, dx, ldx, dy, ldy, w, d->T, d->N, d->K, add);
    }
}

void case_linear_grad_weight(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t ldx = d->K + d->pad, ldy = d->N + 2 * d->pad;
    struct operand dy = scene_real(s, USE_IN, d->T, d->N, ldy, 1),
                   x = scene_real(s, USE_IN, d->T, d->K, ldx, 1);
    struct operand dw = scene_stat(s, USE_INOUT, d->N, d->K, d->K, 1);
    if (s->ops) {
        s->ops->linear_grad_weight(s->q, dw, dy, ldy, x, ldx, d->T, d->N, d->K);
    }
}

void case_bias(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand y = scene_real(s, USE_INOUT, d->T, d->N, d->N + d->pad, 1),
                   b = scene_real(s, USE_IN, 1, d->N, d->N, 1);
    if (s->ops) {
        s->ops->bias(s->q, y, d->N + d->pad, b, d->T, d->N);
    }
}

void case_bias_grad(struct scene *s)
{
    const struct shape *d = s->d;
    struct operand db = scene_stat(s, USE_INOUT, 1, d->N, d->N, 1),
                   dy = scene_real(s, USE_IN, d->T, d->N, d->N + d->pad, 1);
    if (s->ops) {
        s->ops->bias_grad(s->q, db, dy, d->N + d->pad, d->T, d->N);
    }
}

/* ---- embedding: the second third of 3 N vocabulary rows ---- */
void case_embed(struct scene *s)
{
    const struct shape *d = s->d;
    dptr ids = token_ids(s, d->T, 3 * d->N);
    struct operand w = scene_real(s, USE_IN, d->N, d->K, d->K, 1),
                   x = scene_real(s, USE_OUT, d->T, d->K, d->K, 1);
    if (s->ops) {
        s->ops->embed(s->q, x, w, ids, d->N, d->N, d->T, d->K);
    }
}

void case_embed_grad(struct scene *s)
{
    const struct shape *d = s->d;
    dptr ids = token_ids(s, d->T, 3 * d->N);
    struct operand dw = scene_stat(s, USE_INOUT, d->N, d->K, d->K, 1),
                   dx = scene_real(s, USE_IN, d->T, d->K, d->K, 1);
    if (s->ops) {
        s->ops->embed_grad(s->q, dw, dx, ids, d->N, d->N, d->T, d->K);
    }
}

/* Rows go backwards to every second one; the first stays at home. */
void case_put_rows(struct scene *s)
{
    const struct shape *d = s->d;
    int32_t *fill;
    dptr at = scene_ints(s, d->T, &fill);
    struct operand src = scene_real(s, USE_IN, d->T, d->K, d->K + d->N, 1),
                   dst = scene_real(s, USE_INOUT, 2 * d->T, d->K, d->K + d->pad, 1);
    for (int64_t t = 0; fill && t < d->T; t++) {
        fill[t] = t > 0 ? (int32_t)(2 * (d->T - 1 - t)) : -1;
    }
    if (s->ops) {
        s->ops->put_rows(s->q, dst, d->K + d->pad, src, d->K + d->N, at, d->T, d->K);
    }
}

/* ---- norms. flag 0: plain, 1: y is x, 2: residual into its own array, 3: into x, 4: into r ----
 */
void case_rmsnorm(struct scene *s)
{
    const struct shape *d = s->d;
    int form = d->flag;
    int64_t wide = d->heads * d->K, ldx = wide + d->pad, ldy = form == 1 ? ldx : wide + 2 * d->pad;
    struct operand x =
        scene_real(s, form == 1 || form == 3 ? USE_INOUT : USE_IN, d->T, wide, ldx, 2);
    struct operand r =
        form < 2 ? OPERAND_NONE : scene_real(s, form == 4 ? USE_INOUT : USE_IN, d->T, wide, ldx, 1);
    struct operand out = form == 2   ? scene_real(s, USE_OUT, d->T, wide, ldx, 1)
                         : form == 3 ? x
                         : form == 4 ? r
                                     : OPERAND_NONE;
    struct operand w = scene_real(s, USE_IN, 1, d->K, d->K, 1);
    struct operand y = form == 1 ? x : scene_real(s, USE_OUT, d->T, wide, ldy, 1);
    struct operand rstd = scene_stat(s, USE_OUT, d->T, d->heads, d->heads, 1);
    if (s->ops) {
        s->ops->rmsnorm(s->q, y, ldy, rstd, out, x, ldx, r, w, d->T, d->heads, d->K, 1e-5);
    }
}

/* flag 0: plain, 1: dx is dy, 2: with res, 3: dx is res */
void case_rmsnorm_grad_input(struct scene *s)
{
    const struct shape *d = s->d;
    int form = d->flag;
    int64_t wide = d->heads * d->K, ld = wide + d->pad, ldx = wide + 2 * d->pad;
    struct operand dy = scene_real(s, form == 1 ? USE_INOUT : USE_IN, d->T, wide, ld, 1),
                   x = scene_real(s, USE_IN, d->T, wide, ldx, 1);
    struct operand res =
        form < 2 ? OPERAND_NONE : scene_real(s, form == 3 ? USE_INOUT : USE_IN, d->T, wide, ld, 1);
    struct operand rstd = scene_stat(s, USE_IN, d->T, d->heads, d->heads, 1),
                   w = scene_real(s, USE_IN, 1, d->K, d->K, 1);
    struct operand dx = form == 1   ? dy
                        : form == 3 ? res
                                    : scene_real(s, USE_OUT, d->T, wide, ld, 1);
    if (s->ops) {
        s->ops->rmsnorm_grad_input(s->q, dx, ld, res, dy, ld, x, ldx, rstd, w, d->T, d->heads,
                                   d->K);
    }
}

void case_rmsnorm_grad_weight(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t wide = d->heads * d->K, ld = wide + d->pad, ldx = wide + 2 * d->pad;
    struct operand dy = scene_real(s, USE_IN, d->T, wide, ld, 1),
                   x = scene_real(s, USE_IN, d->T, wide, ldx, 1);
    struct operand rstd = scene_stat(s, USE_IN, d->T, d->heads, d->heads, 1),
                   dw = scene_stat(s, USE_INOUT, 1, d->K, d->K, 1);
    if (s->ops) {
        s->ops->rmsnorm_grad_weight(s->q, dw, dy, ld, x, ldx, rstd, d->T, d->heads, d->K);
    }
}

/* flag: sign */
void case_rope(struct scene *s)
{
    const struct shape *d = s->d;
    int64_t wide = d->heads * d->K;
    int32_t *fill;
    struct operand table = scene_stat(s, USE_IN, d->T + 2, d->K, d->K, 1);
    struct operand x = scene_real(s, USE_INOUT, d->T, wide, wide + d->pad, 1);
    dptr position = scene_ints(s, d->T, &fill);
    for (int64_t t = 0; fill && t < d->T; t++) {
        fill[t] = (int32_t)((t * 5) % (d->T + 2));
    }
    if (s->ops) {
        s->ops->rope(s->q, x, wide + d->pad, table, position, d->T, d->heads, d->K, d->flag);
    }
}

/* ---- attention. flag 1: merge or add; N: tokens in a document ---- */
void case_attention(struct scene *s)
{
    const struct shape *d = s->d;
    struct attention_shape a;
    dptr qplace, qstart, kplace, kstart;
    case_attention_shape(s, &a);
    case_places(s, a.Tq, d->offset, d->N, &qplace, &qstart);
    case_places(s, a.Tk, 0, 0, &kplace, &kstart);
    int64_t tokens = d->T * d->B, keys = d->Tk * d->B, kv = d->G * d->K;
    struct operand q = scene_real(s, USE_IN, tokens, d->heads * d->K, a.ldq, 2);
    struct operand k = scene_real(s, USE_IN, keys, kv, a.ldkv, 1),
                   v = scene_real(s, USE_IN, keys, kv, a.ldkv, 1);
    struct operand o =
        scene_real(s, d->flag ? USE_INOUT : USE_OUT, tokens, d->heads * d->K, a.ldo, 1);
    struct operand lse = scene_stat(s, d->flag ? USE_INOUT : USE_OUT, d->heads, tokens, tokens, 1);
    dptr scratch = scratch_for(s, &a);
    if (s->ops) {
        s->ops->attention(s->q, o, lse, q, k, v, qplace, qstart, kplace, &a, d->flag, scratch);
    }
}

void case_attention_delta(struct scene *s)
{
    const struct shape *d = s->d;
    struct attention_shape a;
    int64_t tokens = d->T * d->B, wide = d->heads * d->K;
    case_attention_shape(s, &a);
    struct operand o = scene_real(s, USE_IN, tokens, wide, a.ldo, 1),
                   dout = scene_real(s, USE_IN, tokens, wide, a.ldo, 1);
    struct operand delta = scene_stat(s, USE_OUT, d->heads, tokens, tokens, 1);
    if (s->ops) {
        s->ops->attention_delta(s->q, delta, o, dout, &a);
    }
}

void case_attention_grad(struct scene *s)
{
    const struct shape *d = s->d;
    struct attention_shape a;
    dptr qplace, qstart, kplace, kstart;
    enum use out = d->flag ? USE_INOUT : USE_OUT;
    case_attention_shape(s, &a);
    case_places(s, a.Tq, d->offset, d->N, &qplace, &qstart);
    case_places(s, a.Tk, 0, 0, &kplace, &kstart);
    int64_t tokens = d->T * d->B, keys = d->Tk * d->B, kv = d->G * d->K, wide = d->heads * d->K;
    struct operand q = scene_real(s, USE_IN, tokens, wide, a.ldq, 2),
                   dout = scene_real(s, USE_IN, tokens, wide, a.ldo, 1);
    struct operand k = scene_real(s, USE_IN, keys, kv, a.ldkv, 1),
                   v = scene_real(s, USE_IN, keys, kv, a.ldkv, 1);
    struct operand lse = scene_stat(s, USE_IN, d->heads, tokens, tokens, 1),
                   delta = scene_stat(s, USE_IN, d->heads, tokens, tokens, 1);
    struct operand dq = scene_real(s, out, tokens, wide, a.ldq, 1);
    struct operand dk = scene_real(s, out, keys, kv, a.ldkv, 1),
                   dv = scene_real(s, out, keys, kv, a.ldkv, 1);
    dptr scratch = scratch_for(s, &a);
    struct buffer *b = &s->buffer[8];
    for (int64_t i = 0; !s->ops && i < b->cols * b->rows; i++) { /* weights stay in F16's range */
        double x = scene_value(b, b->first, i / b->cols, i % b->cols);
        scene_poke(b, b->first, i / b->cols, i % b->cols, 4 + x);
    }
    if (s->ops) {
        s->ops->attention_grad(s->q, dq, dk, dv, dout, q, k, v, lse, delta, qplace, qstart, kplace,
                               &a, d->flag, scratch);
    }
}
