#include "compute/cpu_kernels.h"

#include <math.h>
#include <string.h>

#include "compute/simd_avx2.h"

#ifdef __x86_64__
SIMD_BEGIN
#include "compute/cpu_kernels.inc"
SIMD_END

const struct cpu_kernels cpu_kernels_avx2 = CPU_KERNELS("avx2");
#else
const struct cpu_kernels cpu_kernels_avx2 = { .name = "avx2" }; /* never chosen on this machine */
#endif
