#!/bin/sh
# What a machine with NVIDIA GPUs has to show: builds from this tree, then prints one table and
# "N passed, N failed, N skipped". Needs a CUDA toolkit, a C and a C++ compiler, make, MPI, HDF5,
# jansson and xxHash, or their Debian packages unpacked in a folder; no network, no root.
#   tests/gpu/run.sh [--packages DIR|FILE.tar.gz] [--build DIR] [--quick]
# --packages  made by tests/gpu/packages.sh on a machine with network
# --build     where to build and to write (figures, logs) [build-gpu]
# --quick     fewer shapes and golden layouts, no compute-sanitizer
# Environment: CUDA_HOME, CUDA_ARCHS, PYTHON (numpy and h5py: golden runs), CC and so on as for configure.
# Exit: 0 all goals are met, 1 not, 2 usage or build, 6 no usable GPU.
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/gpu/lib.sh"
packages= build=$top/build-gpu quick=
while [ $# -gt 0 ]; do
    case $1 in
    --packages) packages=$2; shift ;;
    --build) build=$2; shift ;;
    --quick) quick=--quick ;;
    *) sed -n '2,11s/^# //p' "$0" >&2; exit 2 ;;
    esac
    shift
done
mkdir -p "$build/gpu" && build=$(cd "$build" && pwd) || exit 2
work=$build/gpu
: >"$work/rows"
LC_ALL=C
export LC_ALL

stop() {
    echo "tests/gpu/run.sh: $1" >&2
    exit 2
}

if [ -f "$packages" ]; then
    mkdir -p "$build/packages" && tar -C "$build/packages" -xzf "$packages" || stop "cannot unpack $packages"
    packages=$build/packages
fi
if [ -n "$packages" ]; then
    packages=$(cd "$packages" && pwd) || exit 2
    . "$top/tests/gpu/use_packages.sh"
fi
# Open MPI: root may start ranks, and their threads may use all cores.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_hwloc_base_binding_policy

# Code for the devices of this machine only.
if [ -z "$CUDA_ARCHS" ] && command -v nvidia-smi >/dev/null; then
    CUDA_ARCHS=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
        sed -n 's/^ *\([0-9]*\)\.\([0-9]\) *$/\1\2/p' | sort -u | tr '\n' ' ')
fi
[ -z "$CUDA_ARCHS" ] || export CUDA_ARCHS

say "build in $build"
if [ ! -f "$top/configure" ]; then
    command -v autoreconf >/dev/null ||
        stop "no configure and no autoconf: run autoreconf -fi where there is one, and carry the tree here"
    (cd "$top" && autoreconf -fi) >"$work/autoreconf.log" 2>&1 || { cat "$work/autoreconf.log" >&2; stop "autoreconf failed"; }
fi
cd "$build" || exit 2
if [ ! -f Makefile ]; then
    "$top/configure" -q --with-cuda >"$work/configure.log" 2>&1 ||
        { tail -n 20 "$work/configure.log" >&2; stop "configure failed"; }
    cat "$work/configure.log" >&2
fi
programs="pretrain pretrain-data pretrain-merge tests/gpu/bench tests/gpu/ops"
! grep -q 'define HAVE_CUDNN 1' config.h || programs="$programs tests/cuda/attention_gpu"
make -j"$(nproc)" $programs >"$work/make.log" 2>&1 || { tail -n 40 "$work/make.log" >&2; stop "the build failed"; }
MPIRUN=$(sed -n 's/^MPIRUN = //p' Makefile)
export MPIRUN

tests/gpu/bench --device >"$work/device" 2>"$work/no-device"
code=$?
if [ $code -ne 0 ]; then
    echo "tests/gpu/run.sh: built in $build, but nothing to run on: $(last_line "$work/no-device")" >&2
    exit $([ $code -eq 6 ] && echo 6 || echo 1)
fi
gpus=$(sed -n 2p "$work/device")
row "device" "$gpus x $(sed -n 1p "$work/device"); $(date -u +%Y-%m-%d)" - measured

say "operations on the device"
limited 1800 "$work/ops.log" tests/gpu/ops ${quick:+--small}
tap "operations against the reference, 3 types" "$work/ops.log" $?
if [ -x tests/cuda/attention_gpu ]; then
    limited 600 "$work/attention.log" tests/cuda/attention_gpu
    tap "cuDNN attention against the reference" "$work/attention.log" $?
else
    row "cuDNN attention against the reference" "built without cuDNN" - skipped
fi

say "golden runs, training against the CPU"
python=${PYTHON:-python3}
if "$python" -c 'import numpy, h5py' 2>/dev/null; then
    PRETRAIN_SOAK=$([ -n "$quick" ] || echo 1) DEVICE_PROGRAM=pretrain BIN=$build \
        TEST_TMP=$work PYTHONDONTWRITEBYTECODE=1 \
        limited 3600 "$work/golden.log" "$python" "$top/tests/cuemu/train.py"
    tap "golden runs, 20 steps against the CPU, checkpoints" "$work/golden.log" $?
else
    row "golden runs, 20 steps against the CPU, checkpoints" "no Python with numpy and h5py (PYTHON=...)" - skipped
fi

say "compute-sanitizer"
sanitizer=$(command -v compute-sanitizer || ls "$CUDA_HOME/bin/compute-sanitizer" /usr/local/cuda/bin/compute-sanitizer 2>/dev/null | head -n 1)
for tool in memcheck racecheck; do
    if [ -n "$quick" ]; then
        row "compute-sanitizer $tool" "--quick" - skipped
    elif [ -z "$sanitizer" ]; then
        row "compute-sanitizer $tool" "not installed" - skipped
    else
        limited 3600 "$work/$tool.log" "$sanitizer" --tool $tool --error-exitcode 9 tests/gpu/ops --small
        code=$?
        judge "compute-sanitizer $tool" "$(grep -h -e 'ERROR SUMMARY' -e 'RACECHECK SUMMARY' "$work/$tool.log" |
            tail -n 1 | sed 's/^=* *//'); exit $code" "no errors" test $code -eq 0
    fi
done

say "loss curves"
. "$top/tests/gpu/steps.sh"
curves
say "benchmarks"
if limited 3600 "$work/bench.log" tests/gpu/bench $quick; then :; else
    row "benchmarks of operations" "exit $?: $(last_line "$work/bench.log")" - failed
fi
awk -F'\t' 'NF == 4' "$work/bench.log" | tee -a "$work/rows" |
    awk -F'\t' '{ printf "   %-8s %s: %s\n", $4, $1, $2 }' >&2
say "steps of training"
steps
finish
