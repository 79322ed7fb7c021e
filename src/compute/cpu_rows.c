#include "compute/cpu.h"

#include <string.h>

enum { GRAIN = 256 }; /* elements of a flat run or columns of a sum that stay with one thread */

/* y = a + b from element y_at, a_at, b_at on */
static void add_run(struct operand y, int64_t y_at, struct operand a, int64_t a_at,
                    struct operand b, int64_t b_at, int64_t n)
{
    float y_piece[CPU_PIECE], a_piece[CPU_PIECE], b_piece[CPU_PIECE];
    CPU_EACH_PIECE(i, here, n)
    {
        float *out = cpu_place(y, y_at + i, y_piece);
        cpu_kernels()->add(out, cpu_get(a, a_at + i, here, a_piece),
                           cpu_get(b, b_at + i, here, b_piece), here);
        cpu_put(y, y_at + i, out, here);
    }
}

void cpu_add(struct queue *q, struct operand y, struct operand a, struct operand b, int64_t n)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, n, GRAIN);
        add_run(y, s.first, a, s.first, b, s.first, s.count);
    }
}

void cpu_bias(struct queue *q, struct operand y, int64_t ldy, struct operand b, int64_t T,
              int64_t N)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            add_run(y, t * ldy, y, t * ldy, b, 0, N);
        }
    }
}

/* Threads own columns in every sum over tokens, so that its order is t ascending whatever their
 * number. */
void cpu_bias_grad(struct queue *q, struct operand db, struct operand dy, int64_t ldy, int64_t T,
                   int64_t N)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, N, GRAIN);
        for (int64_t t = 0; t < T && s.count > 0; t++) {
            add_run(db, s.first, db, s.first, dy, t * ldy + s.first, s.count);
        }
    }
}

void cpu_embed(struct queue *q, struct operand x, struct operand w, dptr ids, int64_t first,
               int64_t rows, int64_t T, int64_t D)
{
    size_t bytes = (size_t)D * dtype_size(x.t);
    BUG_IF(x.t != w.t);
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            int64_t row = cpu_int32(ids)[t] - first;
            if (row >= 0 && row < rows) {
                memcpy(operand_at(x, t * D).p.p, operand_at(w, row * D).p.p, bytes);
            } else {
                memset(operand_at(x, t * D).p.p, 0, bytes);
            }
        }
    }
}

void cpu_embed_grad(struct queue *q, struct operand dw, struct operand dx, dptr ids, int64_t first,
                    int64_t rows, int64_t T, int64_t D)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, D, GRAIN);
        for (int64_t t = 0; t < T && s.count > 0; t++) {
            int64_t row = cpu_int32(ids)[t] - first;
            if (row >= 0 && row < rows) {
                int64_t at = row * D + s.first;
                add_run(dw, at, dw, at, dx, t * D + s.first, s.count);
            }
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
        float piece[CPU_PIECE];
        for (int64_t i = s.first * heads; i < (s.first + s.count) * heads; i++) {
            int64_t t = i / heads, at = t * ld + i % heads * K;
            float *head = cpu_place(x, at, piece);
            cpu_get(x, at, K, piece);
            k->rope(head, cpu_floats(table) + cpu_int32(position)[t] * K, (float)sign, K / 2);
            cpu_put(x, at, head, K);
        }
    }
}

static void swiglu_row(struct operand h, struct operand gate, struct operand up, int64_t F)
{
    float h_piece[CPU_PIECE], gate_piece[CPU_PIECE], up_piece[CPU_PIECE];
    CPU_EACH_PIECE(i, here, F)
    {
        float *out = cpu_place(h, i, h_piece);
        cpu_kernels()->swiglu(out, cpu_get(gate, i, here, gate_piece),
                              cpu_get(up, i, here, up_piece), here);
        cpu_put(h, i, out, here);
    }
}

void cpu_swiglu(struct queue *q, struct operand h, struct operand gu, int64_t T, int64_t F)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            struct operand gate = operand_at(gu, t * 2 * F);
            swiglu_row(operand_at(h, t * F), gate, operand_at(gate, F), F);
        }
    }
}

static void swiglu_grad_row(struct operand dgate, struct operand dup, struct operand dh,
                            struct operand gate, struct operand up, int64_t F)
{
    float dgate_piece[CPU_PIECE], dup_piece[CPU_PIECE], dh_piece[CPU_PIECE], gate_piece[CPU_PIECE],
        up_piece[CPU_PIECE];
    CPU_EACH_PIECE(i, here, F)
    {
        float *to_gate = cpu_place(dgate, i, dgate_piece), *to_up = cpu_place(dup, i, dup_piece);
        cpu_kernels()->swiglu_grad(to_gate, to_up, cpu_get(dh, i, here, dh_piece),
                                   cpu_get(gate, i, here, gate_piece),
                                   cpu_get(up, i, here, up_piece), here);
        cpu_put(dgate, i, to_gate, here);
        cpu_put(dup, i, to_up, here);
    }
}

void cpu_swiglu_grad(struct queue *q, struct operand dgu, struct operand dh, struct operand gu,
                     int64_t T, int64_t F)
{
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, T, 1);
        for (int64_t t = s.first; t < s.first + s.count; t++) {
            struct operand gate = operand_at(gu, t * 2 * F), dgate = operand_at(dgu, t * 2 * F);
            swiglu_grad_row(dgate, operand_at(dgate, F), operand_at(dh, t * F), gate,
                            operand_at(gate, F), F);
        }
    }
}
