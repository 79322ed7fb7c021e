/* The hot loops of the CPU backend over plain arrays, one thread's share, compiled once per
 * instruction set from cpu_kernels.inc. Element i of an output depends on element i of the inputs
 * alone and not on where a run begins or ends; sums depend on the length. */
#ifndef COMPUTE_CPU_KERNELS_H
#define COMPUTE_CPU_KERNELS_H
#include "base/types.h"

struct cpu_adamw {
    float clip, beta1, rest1, beta2, rest2, decay, rate, inverse2, eps;
};

struct cpu_kernels {
    const char *name;
    /* to F32, and from it, rounded to nearest even; a NaN stays one */
    void (*load_bf16)(float *y, const uint16_t *x, int64_t n);
    void (*store_bf16)(uint16_t *y, const float *x, int64_t n);
    void (*load_f16)(float *y, const uint16_t *x, int64_t n);
    void (*store_f16)(uint16_t *y, const float *x, int64_t n);
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    void (*scale)(float *y, float f, int64_t n); /* y *= f */
    void (*mix)(float *y, float keep, const float *x, float take,
                int64_t n); /* y = keep y + take x */
    float (*dot)(const float *a, const float *b, int64_t n);
    float (*largest)(const float *x, int64_t n); /* -inf if n = 0; a NaN may be passed over */
    float (*exp_sum)(const float *x, float shift, int64_t n);     /* sum of exp(x - shift) */
    float (*exp_store)(float *x, float shift, int64_t n);         /* the same, x = exp(x - shift) */
    void (*exp_scale)(float *x, float shift, float f, int64_t n); /* x = exp(x - shift) f */
    void (*score_grad)(float *s, float *ds, float lse, float delta, float f,
                       int64_t n);               /* s = exp(s - lse); ds = s (ds - delta) f */
    float (*squares)(const float *x, int64_t n); /* their sum */
    void (*norm)(float *y, const float *x, const float *w, float rstd,
                 int64_t n); /* y = x rstd w */
    float (*norm_dot)(const float *dy, const float *x, const float *w, float rstd,
                      int64_t n); /* sum of w dy x rstd */
    void (*norm_grad)(float *dx, const float *res, const float *dy, const float *x, const float *w,
                      float rstd, float mean, int64_t n);
    void (*norm_weight)(float *dw, const float *dy, const float *x, float rstd,
                        int64_t n);                                       /* dw += dy x rstd */
    void (*rope)(float *x, const float *table, float sign, int64_t half); /* one head */
    void (*swiglu)(float *h, const float *gate, const float *up, int64_t n);
    void (*swiglu_grad)(float *dgate, float *dup, const float *dh, const float *gate,
                        const float *up, int64_t n);
    double (*square_sum)(const float *x, int64_t n);
    void (*adamw)(float *w, float *m, float *v, const float *g, const struct cpu_adamw *a,
                  int64_t n);
    float (*peak)(
        int64_t rounds); /* 1000 fused multiply-adds in each of peak_chains lanes per round */
    int64_t peak_flop;   /* of one round */
};

extern const struct cpu_kernels cpu_kernels_avx512, cpu_kernels_avx2, cpu_kernels_baseline;
#endif
