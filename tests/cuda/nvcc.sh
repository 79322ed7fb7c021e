#!/bin/sh
# The kernels as nvcc compiled them: every architecture, nothing of a thread in memory, no C++ runtime, no driver.
. "${srcdir:-.}/tests/lib.sh"
grep -q 'define HAVE_CUDA 1' config.h || tap_skip_all "configured without CUDA"
set -- $CUDA_KERNELS
[ $# -gt 0 ] || tap_skip_all "no kernels"
tap_plan $((2 * $# + 5))

# What ptxas said: as many kernels for each architecture, at least one.
all_architectures() {
    unset m
    for a in $CUDA_ARCHS; do
        n=$(grep -c "Compiling entry function .* for 'sm_$a'" "$1")
        [ "$n" -gt 0 ] && [ "$n" -eq "${m=$n}" ] || { echo "$1: $n kernels for sm_$a, before ${m-none}"; return 1; }
    done
}

# Spills, local arrays and calls give a kernel a stack.
no_stack() {
    awk '/Compiling entry function/ { kernel = $7 " for " $9 }
        /bytes stack frame/ { seen = 1 }
        /bytes stack frame/ && ($1 + $5 + $9 > 0) { print FILENAME ": " kernel ": " $0; bad = 1 }
        END { exit bad || !seen }' "$1"
}

for k; do
    tap_run "$k for sm_ $CUDA_ARCHS" all_architectures "${k%.cu}.ptxas"
    tap_run "$k: no spills, no local arrays" no_stack "${k%.cu}.ptxas"
done

# The kernel that this test is there to see.
cat >"$work/planted.cu" <<'END'
__global__ void planted(float *x, int i)
{
    float local[64] = {};
    for (int j = 0; j < i; j++) {
        local[(j * i) & 63] += x[j];
    }
    x[threadIdx.x] = local[i & 63];
}
END
if $NVCC_COMPILE -c -o "$work/planted.o" "$work/planted.cu" >"$work/planted.ptxas" 2>&1 &&
    all_architectures "$work/planted.ptxas" >"$work/out" 2>&1 && ! no_stack "$work/planted.ptxas" >"$work/out"; then
    tap_match "a local array is seen" "planted.*256 bytes stack frame"
else
    tap_match "a local array is refused" "Local memory used" "$work/planted.ptxas"
fi

nm -u libpretrain_cuda.a >"$work/undefined" 2>&1
tap_match "the library calls the runtime" ' cuda[A-Z]' "$work/undefined"
tap_absent "no C++ runtime" ' \(_Z[nd][aw]\|_ZN*K*St\|_ZT\|__cxa\|__gxx\|_Unwind\)' "$work/undefined"
tap_absent "no call of the driver" ' cu[A-Z]' "$work/undefined"
LC_ALL=C ldd pretrain >"$work/libraries" 2>&1
tap_absent "the program does not ask for the driver" 'libcuda\.so' "$work/libraries"
tap_done
