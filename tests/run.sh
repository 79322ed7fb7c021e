#!/bin/sh
# Builds (or rebuilds) in build/ and runs all tests; the last line says how many passed and failed.
# Meant for root on Debian 12: packages that are absent are installed. Safe to run again.
cd "$(dirname "$0")/.." || exit 1
. tools/setup.sh
top=$(pwd) build=$(pwd)/build
passed=0 failed=0 skipped=0

finish() {
    [ "$((passed + failed))" -gt 0 ] || failed=1
    line="$passed passed, $failed failed"
    [ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
    echo "$line"
    [ "$failed" -eq 0 ]
    exit
}

stop() {
    echo "tests/run.sh: $1" >&2
    failed=$((failed + 1))
    finish
}

announce() {
    echo "== $1"
}

announce packages
setup_packages $setup_build_packages g++ hdf5-tools python3 python3-venv python3-numpy python3-h5py \
    ca-certificates strace libsentencepiece-dev sentencepiece clang libclang-rt-dev

# For tests/interop: libraries if PyPI can be reached, else those tests are skipped.
mkdir -p "$build" || stop "cannot make $build"
PYTHON=$build/venv/bin/python
if [ ! -x "$PYTHON" ] || ! "$PYTHON" -c 'import safetensors, numpy, tokenizers, tiktoken, sentencepiece' 2>/dev/null; then
    announce "python3 -m venv build/venv; pip install safetensors numpy tokenizers tiktoken sentencepiece"
    rm -rf "$build/venv"
    { /usr/bin/python3 -m venv --system-site-packages "$build/venv" &&
        timeout 120 "$PYTHON" -m pip -q --disable-pip-version-check install --retries 1 --timeout 15 \
            safetensors numpy tokenizers tiktoken sentencepiece; } || echo "tests/run.sh: no safetensors: some tests are skipped" >&2
    [ -x "$PYTHON" ] || PYTHON=/usr/bin/python3
fi
"$PYTHON" -c "import pyarrow.parquet" 2>/dev/null || # from 21 on it wants a newer numpy than h5py is built for
    timeout 120 "$PYTHON" -m pip -q --disable-pip-version-check install --retries 1 --timeout 15 'pyarrow<21' ||
    echo "tests/run.sh: no pyarrow: tests/interop/rows.sh is skipped" >&2
export PYTHON

# For the CUDA part: the machine's toolkit, else PyPI's in build/cuda-toolkit, else its tests are skipped.
if ! setup_finds_nvcc; then
    announce "tools/cuda-toolkit.sh build/cuda-toolkit"
    if timeout 300 sh tools/cuda-toolkit.sh build/cuda-toolkit; then
        CUDA_HOME=$build/cuda-toolkit
        export CUDA_HOME
        grep -q -F "$CUDA_HOME" build/config.log 2>/dev/null || rm -f build/Makefile
    else
        echo "tests/run.sh: no CUDA toolkit: some tests are skipped" >&2
        ! grep -q 'define HAVE_CUDA 1' build/config.h 2>/dev/null || rm -f build/Makefile
    fi
fi

# A build of jobs/quickstart.sh may have left that part out.
! grep -q -e "--without-cuda" build/config.log 2>/dev/null || rm -f build/Makefile

announce build
setup_build --enable-warnings-as-errors || stop "the build failed"
cd "$build" || exit 1
announce "make -j2 check"
find . \( -name venv -o -name cuda-toolkit \) -prune -o \( -name '*.trs' -o -name '*.log' -path './tests/*' \) -exec rm -f {} +
make -j2 -k check >check.log 2>&1
code=$?

results() {
    find tests -name '*.trs' -exec cat {} + | grep -c "^:test-result: \($1\)"
}
passed=$(results 'PASS\|XFAIL') failed=$(results 'FAIL\|XPASS\|ERROR') skipped=$(results SKIP)
if [ "$failed" -gt 0 ]; then
    for t in $(grep -l '^:global-test-result: \(FAIL\|ERROR\|XPASS\)' $(find tests -name '*.trs')); do
        announce "${t%.trs}"
        grep -v '^[A-Z]*: \|^ok ' "${t%.trs}.log" | tail -n 120
    done
    grep -h '^\(FAIL\|ERROR\|XPASS\): ' check.log
elif [ $code -ne 0 ]; then
    tail -n 60 check.log
    stop "make check failed"
fi
finish
