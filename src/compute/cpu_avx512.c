#include "compute/cpu_kernels.h"

#include <math.h>
#include <string.h>

#include "compute/simd_avx512.h"

#ifdef __x86_64__
SIMD_BEGIN
#include "compute/cpu_kernels.inc"
SIMD_END

const struct cpu_kernels cpu_kernels_avx512 = CPU_KERNELS("avx512");
#else
const struct cpu_kernels cpu_kernels_avx512 = { .name =
                                                    "avx512" }; /* never chosen on this machine */
#endif
