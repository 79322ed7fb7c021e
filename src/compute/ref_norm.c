#include "compute/ref.h"

#include <math.h>

static void norm_run(struct operand y, int64_t y_at, double rstd, struct operand x, int64_t x_at,
                     struct operand w, int64_t K)
{
    for (int64_t i = 0; i < K; i++) {
        ref_put(y, y_at + i, ref_get(x, x_at + i) * rstd * ref_get(w, i));
    }
}

void ref_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                 struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                 struct operand w, int64_t T, int heads, int64_t K, double eps)
{
    struct operand in = r.p.p ? x_out : x;
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        for (int64_t i = 0; r.p.p && i < K; i++) {
            ref_put(x_out, t * ldx + i, ref_get(x, t * ldx + i) + ref_get(r, t * ldx + i));
        }
        for (int h = 0; h < heads; h++) {
            double sum = 0;
            for (int64_t i = 0; i < K; i++) {
                double v = ref_get(in, t * ldx + h * K + i);
                sum += v * v;
            }
            ref_put(rstd, t * heads + h, 1 / sqrt(sum / (double)K + eps));
            norm_run(y, t * ldy + h * K, ref_get(rstd, t * heads + h), in, t * ldx + h * K, w, K);
        }
    }
}

void ref_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                            struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                            struct operand rstd, struct operand w, int64_t T, int heads, int64_t K)
{
    REF_ROWS
    for (int64_t t = 0; t < T; t++) {
        for (int h = 0; h < heads; h++) {
            double rs = ref_get(rstd, t * heads + h), mean = 0;
            for (int64_t i = 0; i < K; i++) {
                mean += ref_get(w, i) * ref_get(dy, t * lddy + h * K + i) *
                        ref_get(x, t * ldx + h * K + i) * rs;
            }
            mean /= (double)K;
            for (int64_t i = 0; i < K; i++) {
                int64_t at = t * lddx + h * K + i;
                double xhat = ref_get(x, t * ldx + h * K + i) * rs;
                double d = rs * (ref_get(w, i) * ref_get(dy, t * lddy + h * K + i) - xhat * mean);
                ref_put(dx, at, res.p.p ? ref_get(res, at) + d : d);
            }
        }
    }
}

void ref_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                             struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                             int heads, int64_t K)
{
    REF_ROWS
    for (int64_t i = 0; i < K; i++) {
        double sum = 0;
        for (int64_t t = 0; t < T; t++) {
            for (int h = 0; h < heads; h++) {
                sum += ref_get(dy, t * lddy + h * K + i) * ref_get(x, t * ldx + h * K + i) *
                       ref_get(rstd, t * heads + h);
            }
        }
        ref_put(dw, i, ref_get(dw, i) + sum);
    }
}
