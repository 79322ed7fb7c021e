#include "compute/cpu.h"

enum { GRAIN = 1 << 14 }; /* elements below which a second thread does not pay */

static uint16_t *halves(struct operand o)
{
    return (uint16_t *)(void *)o.p.p;
}

void cpu_load(float *to, struct operand o, int64_t at, int64_t n)
{
    switch (o.t) {
    case BF16:
        cpu_kernels()->load_bf16(to, halves(o) + at, n);
        break;
    case F16:
        cpu_kernels()->load_f16(to, halves(o) + at, n);
        break;
    default:
        dtype_convert(to, F32, operand_at(o, at).p.p, o.t, n);
    }
}

void cpu_store(struct operand o, int64_t at, const float *from, int64_t n)
{
    switch (o.t) {
    case BF16:
        cpu_kernels()->store_bf16(halves(o) + at, from, n);
        break;
    case F16:
        cpu_kernels()->store_f16(halves(o) + at, from, n);
        break;
    default:
        dtype_convert(operand_at(o, at).p.p, o.t, from, F32, n);
    }
}

struct cpu_panel cpu_panel(struct operand o, int64_t ld, int64_t rows, int64_t cols, float *work,
                           int64_t ld_work)
{
    if (o.t == F32) {
        return (struct cpu_panel){ cpu_floats(o), ld };
    }
    for (int64_t i = 0; i < rows; i++) {
        cpu_load(work + i * ld_work, o, i * ld, cols);
    }
    return (struct cpu_panel){ work, ld_work };
}

void cpu_convert(struct queue *q, struct operand dst, struct operand src, int64_t n)
{
    if (dst.t == src.t || (dst.t != F32 && src.t != F32)) {
        queue_convert(q, dst, src, n);
        return;
    }
    QUEUE_EACH_PART(part)
    {
        struct queue_share s = queue_share(q, part, n, GRAIN);
        if (dst.t == F32) {
            cpu_load(cpu_floats(dst) + s.first, src, s.first, s.count);
        } else {
            cpu_store(dst, s.first, cpu_floats(src) + s.first, s.count);
        }
    }
}
