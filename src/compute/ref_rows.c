#include "compute/ref.h"

#include <math.h>
#include <string.h>

void ref_add(struct queue *q, struct operand y, struct operand a, struct operand b, int64_t n)
{
    REF_ROWS
    for (int64_t i = 0; i < n; i++) {
        ref_put(y, i, ref_get(a, i) + ref_get(b, i));
    }
}

void ref_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
              int64_t N)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        for (int64_t n = 0; n < N; n++) {
            ref_put(y, t * ldy + n, ref_get(y, t * ldy + n) + ref_get(b, n));
        }
    }
}

void ref_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                   int64_t N)
{
    REF_ROWS
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        for (int64_t t = 0; t < T; t++) {
            sum += ref_get(dy, t * ldy + n);
        }
        ref_put(db, n, ref_get(db, n) + sum);
    }
}

void ref_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
               int64_t rows, int64_t T, int64_t D)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        int64_t row = ref_int32(ids)[t] - first;
        int here = row >= 0 && row < rows;
        for (int64_t d = 0; d < D; d++) {
            ref_put(x, t * D + d, here ? ref_get(w, row * D + d) : 0);
        }
    }
}

/* For both CPU backends: it computes nothing. */
void ref_put_rows(struct queue *q, struct operand dst, int64_t ldd, struct operand src, int64_t lds,
                  dptr at, int64_t T, int64_t n)
{
    BUG_IF(dst.t != src.t);
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        int64_t row = ref_int32(at)[t];
        if (row >= 0) {
            memcpy(operand_at(dst, row * ldd).p.p, operand_at(src, t * lds).p.p,
                   (size_t)n * dtype_size(src.t));
        }
    }
}

/* Threads own columns, so that each element gets its tokens in order. */
void ref_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                    int64_t rows, int64_t T, int64_t D)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, D, 1);
        for (int64_t t = 0; t < T; t++) {
            int64_t row = ref_int32(ids)[t] - first;
            for (int64_t d = s.first; row >= 0 && row < rows && d < s.first + s.count; d++) {
                ref_put(dw, row * D + d, ref_get(dw, row * D + d) + ref_get(dx, t * D + d));
            }
        }
    }
}

void ref_rope(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
              int64_t T, int heads, int64_t K, int sign)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        int64_t at = ref_int32(position)[t] * K;
        for (int h = 0; h < heads; h++) {
            for (int64_t i = 0; i < K / 2; i++) {
                int64_t low = t * ld + h * K + i, high = low + K / 2;
                double c = ref_get(table, at + i), s = sign * ref_get(table, at + K / 2 + i);
                double a = ref_get(x, low), b = ref_get(x, high);
                ref_put(x, low, a * c - b * s);
                ref_put(x, high, b * c + a * s);
            }
        }
    }
}

void ref_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        for (int64_t f = 0; f < F; f++) {
            double gate = ref_get(gu, t * 2 * F + f), up = ref_get(gu, t * 2 * F + F + f);
            ref_put(h, t * F + f, gate / (1 + exp(-gate)) * up);
        }
    }
}

/* silu'(g) = s (1 + g (1 - s)), s = 1/(1 + exp(-g)) */
void ref_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                     int64_t T, int64_t F)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        for (int64_t f = 0; f < F; f++) {
            int64_t at = t * 2 * F + f;
            double gate = ref_get(gu, at), up = ref_get(gu, at + F), d = ref_get(dh, t * F + f);
            double s = 1 / (1 + exp(-gate));
            ref_put(dgu, at, d * up * s * (1 + gate * (1 - s)));
            ref_put(dgu, at + F, d * gate * s);
        }
    }
}
