#include "compute/cpu.h"

#include <math.h>

enum { GRAIN = 256 }; /* columns of a sum that stay with one thread */

/* One run of K elements; sums are those of pieces, in order. Returns rstd. */
static float norm_run(struct operand y, struct operand x_out, struct operand x, struct operand r,
                      struct operand w, int64_t K, float eps)
{
    const struct cpu_kernels *k = cpu_kernels();
    float y_piece[CPU_PIECE], x_piece[CPU_PIECE], r_piece[CPU_PIECE], w_piece[CPU_PIECE];
    struct operand in = r.p.p ? x_out : x;
    float squares = 0;
    CPU_EACH_PIECE(i, here, K)
    {
        const float *from = cpu_get(x, i, here, x_piece);
        if (r.p.p) { /* what is stored, rounded, is normed */
            float *sum = cpu_place(x_out, i, x_piece);
            k->add(sum, from, cpu_get(r, i, here, r_piece), here);
            cpu_put(x_out, i, sum, here);
            from = cpu_get(x_out, i, here, x_piece);
        }
        squares += k->squares(from, here);
    }
    float rstd = 1 / sqrtf(squares / (float)K + eps);
    CPU_EACH_PIECE(i, here, K)
    {
        float *to = cpu_place(y, i, y_piece);
        k->norm(to, cpu_get(in, i, here, x_piece), cpu_get(w, i, here, w_piece), rstd, here);
        cpu_put(y, i, to, here);
    }
    return rstd;
}

void cpu_rmsnorm(struct queue *q, struct operand y, int64_t ldy, struct operand rstd,
                 struct operand x_out, struct operand x, int64_t ldx, struct operand r,
                 struct operand w, int64_t T, int heads, int64_t K, double eps)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t i = s.first * heads; i < (s.first + s.count) * heads; i++) {
            int64_t t = i / heads, at = t * ldx + i % heads * K;
            struct operand none = OPERAND_NONE;
            cpu_floats(rstd)[i] = norm_run(operand_at(y, t * ldy + i % heads * K),
                                           r.p.p ? operand_at(x_out, at) : none, operand_at(x, at),
                                           r.p.p ? operand_at(r, at) : none, w, K, (float)eps);
        }
    }
}

static void norm_grad_run(struct operand dx, struct operand res, struct operand dy,
                          struct operand x, struct operand w, float rstd, int64_t K)
{
    const struct cpu_kernels *k = cpu_kernels();
    float dx_piece[CPU_PIECE], res_piece[CPU_PIECE], dy_piece[CPU_PIECE], x_piece[CPU_PIECE],
        w_piece[CPU_PIECE];
    float sum = 0;
    CPU_EACH_PIECE(i, here, K)
    {
        sum += k->norm_dot(cpu_get(dy, i, here, dy_piece), cpu_get(x, i, here, x_piece),
                           cpu_get(w, i, here, w_piece), rstd, here);
    }
    CPU_EACH_PIECE(i, here, K)
    {
        float *to = cpu_place(dx, i, dx_piece);
        k->norm_grad(to, res.p.p ? cpu_get(res, i, here, res_piece) : NULL,
                     cpu_get(dy, i, here, dy_piece), cpu_get(x, i, here, x_piece),
                     cpu_get(w, i, here, w_piece), rstd, sum / (float)K, here);
        cpu_put(dx, i, to, here);
    }
}

void cpu_rmsnorm_grad_input(struct queue *q, struct operand dx, int64_t lddx, struct operand res,
                            struct operand dy, int64_t lddy, struct operand x, int64_t ldx,
                            struct operand rstd, struct operand w, int64_t T, int heads, int64_t K)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t i = s.first * heads; i < (s.first + s.count) * heads; i++) {
            int64_t t = i / heads, at = t * lddx + i % heads * K;
            struct operand none = OPERAND_NONE;
            norm_grad_run(operand_at(dx, at), res.p.p ? operand_at(res, at) : none,
                          operand_at(dy, t * lddy + i % heads * K),
                          operand_at(x, t * ldx + i % heads * K), w, cpu_floats(rstd)[i], K);
        }
    }
}

static void norm_weight_run(float *dw, struct operand dy, struct operand x, float rstd, int64_t n)
{
    float dy_piece[CPU_PIECE], x_piece[CPU_PIECE];
    CPU_EACH_PIECE(i, here, n)
    {
        cpu_kernels()->norm_weight(dw + i, cpu_get(dy, i, here, dy_piece),
                                   cpu_get(x, i, here, x_piece), rstd, here);
    }
}

/* Threads own columns; tokens ascending. */
void cpu_rmsnorm_grad_weight(struct queue *q, struct operand dw, struct operand dy, int64_t lddy,
                             struct operand x, int64_t ldx, struct operand rstd, int64_t T,
                             int heads, int64_t K)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, K, GRAIN);
        for (int64_t i = 0; i < T * heads && s.count > 0; i++) {
            int64_t t = i / heads, column = i % heads * K + s.first;
            norm_weight_run(cpu_floats(dw) + s.first, operand_at(dy, t * lddy + column),
                            operand_at(x, t * ldx + column), cpu_floats(rstd)[i], s.count);
        }
    }
}
