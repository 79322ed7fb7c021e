#include "compute/cpu_kernels.h"

#include "compute/simd_baseline.h"

#include "compute/cpu_kernels.inc"

const struct cpu_kernels cpu_kernels_baseline = CPU_KERNELS("baseline");
