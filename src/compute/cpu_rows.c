#include "compute/cpu.h"

#include <string.h>

enum { GRAIN = 256 }; /* floats of a flat run or columns of a sum that stay with one thread */

void cpu_add(struct queue *q, struct operand y, struct operand a, struct operand b, int64_t n)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, n, GRAIN);
        k->add(cpu_floats(y) + s.first, cpu_floats(a) + s.first, cpu_floats(b) + s.first, s.count);
    }
}

void cpu_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
              int64_t N)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            float *row = cpu_floats(y) + t * ldy;
            k->add(row, row, cpu_floats(b), N);
        }
    }
}

/* Threads own columns in every sum over tokens, so that its order is t ascending whatever their
 * number. */
void cpu_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                   int64_t N)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, GRAIN);
        float *sum = cpu_floats(db) + s.first;
        for (int64_t t = 0; t < T && s.count > 0; t++) {
            k->add(sum, sum, cpu_floats(dy) + t * ldy + s.first, s.count);
        }
    }
}

void cpu_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
               int64_t rows, int64_t T, int64_t D)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            int64_t row = cpu_int32(ids)[t] - first;
            if (row >= 0 && row < rows) {
                memcpy(cpu_floats(x) + t * D, cpu_floats(w) + row * D, (size_t)D * sizeof(float));
            } else {
                memset(cpu_floats(x) + t * D, 0, (size_t)D * sizeof(float));
            }
        }
    }
}

void cpu_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                    int64_t rows, int64_t T, int64_t D)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, D, GRAIN);
        for (int64_t t = 0; t < T && s.count > 0; t++) {
            int64_t row = cpu_int32(ids)[t] - first;
            if (row >= 0 && row < rows) {
                float *sum = cpu_floats(dw) + row * D + s.first;
                k->add(sum, sum, cpu_floats(dx) + t * D + s.first, s.count);
            }
        }
    }
}

void cpu_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                 struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                 struct operand w, int64_t T, int heads, int64_t K, double eps)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            for (int h = 0; h < heads; h++) {
                int64_t at = t * ldx + h * K;
                const float *residual = r.p.p ? cpu_floats(r) + at : NULL;
                float *sum = r.p.p ? cpu_floats(x_out) + at : NULL;
                cpu_floats(rstd)[t * heads + h] =
                    k->norm(cpu_floats(y) + t * ldy + h * K, sum, cpu_floats(x) + at, residual,
                            cpu_floats(w), (float)eps, K);
            }
        }
    }
}

void cpu_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                            struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                            struct operand rstd, struct operand w, int64_t T, int heads, int64_t K)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            for (int h = 0; h < heads; h++) {
                int64_t at = t * lddx + h * K;
                k->norm_grad(cpu_floats(dx) + at, res.p.p ? cpu_floats(res) + at : NULL,
                             cpu_floats(dy) + t * lddy + h * K, cpu_floats(x) + t * ldx + h * K,
                             cpu_floats(w), cpu_floats(rstd)[t * heads + h], K);
            }
        }
    }
}

void cpu_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                             struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                             int heads, int64_t K)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, K, GRAIN);
        for (int64_t i = 0; i < T * heads && s.count > 0; i++) {
            int64_t t = i / heads, column = i % heads * K + s.first;
            k->norm_weight(cpu_floats(dw) + s.first, cpu_floats(dy) + t * lddy + column,
                           cpu_floats(x) + t * ldx + column, cpu_floats(rstd)[i], s.count);
        }
    }
}

void cpu_rope(struct queue *q, struct operand x, int64_t ld, struct operand table, dptr position,
              int64_t T, int heads, int64_t K, int sign)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            const float *row = cpu_floats(table) + cpu_int32(position)[t] * K;
            for (int h = 0; h < heads; h++) {
                k->rope(cpu_floats(x) + t * ld + h * K, row, (float)sign, K / 2);
            }
        }
    }
}

void cpu_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            const float *gate = cpu_floats(gu) + t * 2 * F;
            k->swiglu(cpu_floats(h) + t * F, gate, gate + F, F);
        }
    }
}

void cpu_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                     int64_t T, int64_t F)
{
    const struct cpu_kernels *k = cpu_kernels();
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            const float *gate = cpu_floats(gu) + t * 2 * F;
            float *dgate = cpu_floats(dgu) + t * 2 * F;
            k->swiglu_grad(dgate, dgate + F, cpu_floats(dh) + t * F, gate, gate + F, F);
        }
    }
}
