#include "compute/cpu.h"

#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

struct isa {
    const struct cpu_kernels *kernels;
    int present;
};

static const struct cpu_kernels *chosen;

#ifdef __x86_64__
/* clang's __builtin_cpu_supports does not know it. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

/* Widest first. */
static int list_isas(struct isa all[3])
{
    int n = 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    all[n++] = (struct isa){ &cpu_kernels_avx512, avx512 && avx2 };
    all[n++] = (struct isa){ &cpu_kernels_avx2, avx2 };
#else
    all[n++] = (struct isa){ &cpu_kernels_avx512, 0 };
    all[n++] = (struct isa){ &cpu_kernels_avx2, 0 };
#endif
    all[n++] = (struct isa){ &cpu_kernels_baseline, 1 };
    return n;
}

const struct cpu_kernels *cpu_widest(void)
{
    struct isa all[3];
    int n = list_isas(all), i = 0;
    while (i < n - 1 && !all[i].present) {
        i++;
    }
    return all[i].kernels;
}

const struct cpu_kernels *cpu_kernels(void)
{
    return chosen ? chosen : cpu_widest();
}

enum status cpu_choose(const char *isa, struct err *e)
{
    struct isa all[3];
    int n = list_isas(all);
    if (!strcmp(isa, "auto")) {
        chosen = cpu_widest();
        return OK;
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(isa, all[i].kernels->name)) {
            continue;
        }
        if (!all[i].present) {
            return err_set(
                e, E_RESOURCE,
                "isa = '%s': this machine does not have it; set isa to 'auto', which takes %s here",
                isa, cpu_widest()->name);
        }
        chosen = all[i].kernels;
        return OK;
    }
    return err_set(e, E_INPUT, "unknown isa '%s': choose 'auto', 'avx512', 'avx2' or 'baseline'",
                   isa);
}

void cpu_describe(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s (%s)", cpu_products_library(), cpu_kernels()->name);
}

const struct ops ops_cpu = {
    .name = "cpu",
#if defined HAVE_DNNL || defined HAVE_CBLAS
    .queue_create = cpu_queue_create,
    .linear = cpu_linear,
    .linear_grad_input = cpu_linear_grad_input,
    .linear_grad_weight = cpu_linear_grad_weight,
    .attention = cpu_attention,
    .attention_grad = cpu_attention_grad,
    .attention_scratch = cpu_attention_scratch,
    .attention_delta = cpu_attention_delta,
#endif
    .convert = cpu_convert,
    .add = cpu_add,
    .bias = cpu_bias,
    .bias_grad = cpu_bias_grad,
    .embed = cpu_embed,
    .embed_grad = cpu_embed_grad,
    .rmsnorm = cpu_rmsnorm,
    .rmsnorm_grad_input = cpu_rmsnorm_grad_input,
    .rmsnorm_grad_weight = cpu_rmsnorm_grad_weight,
    .rope = cpu_rope,
    .swiglu = cpu_swiglu,
    .swiglu_grad = cpu_swiglu_grad,
    .softmax_stats = cpu_softmax_stats,
    .softmax_grad = cpu_softmax_grad,
    .square_sums = cpu_square_sums,
    .adamw = cpu_adamw,
    .measure_peak = cpu_measure_peak,
};
