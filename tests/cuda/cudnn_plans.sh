# cuDNN builds plans for our attention without a GPU: cudnn_plans under a libcuda.so.1 of its own.
. "${srcdir:-.}/tests/lib.sh"

program=$builddir/tests/cuda/cudnn_plans
[ -x "$program" ] || tap_skip_all "built without cuDNN"

# The library that looks for the driver, by the loader's own account: its strings name all
# functions that it may ask for.
loaded=$(LD_TRACE_LOADED_OBJECTS=1 "$program" | sed -n 's/.*libcudnn\.so[.0-9]* => \(\/[^ ]*\).*/\1/p')
[ -n "$loaded" ] || tap_skip_all "the loader does not find libcudnn.so"
graph=$(ls "$(dirname "$loaded")"/libcudnn_graph.so.* 2>/dev/null | head -n 1)
engines=$(ls "$(dirname "$loaded")"/libcudnn_engines_runtime_compiled.so.* 2>/dev/null | head -n 1)
[ -n "$graph" ] && [ -n "$engines" ] || tap_skip_all "cuDNN's engines are not beside $loaded"

here=$srcdir/tests/cuda
mkdir "$work/driver"
sed -n 's/^int \(cu[A-Za-z0-9_]*\)(.*/\1/p' "$here/stand_in_driver.c" | sort >"$work/succeed"
cat "$graph" "$engines" | tr '\0' '\n' | grep -ax 'cu[A-Z][A-Za-z0-9_]*' | sort -u \
    | comm -23 - "$work/succeed" | sed 's/.*/int &(void) { return NOT_FOUND; }/' >"$work/fail.c"
# shellcheck disable=SC2086
${CC:-cc} -shared -fPIC -w -DNOT_FOUND=500 -Wl,-soname,libcuda.so.1 -o "$work/driver/libcuda.so.1" \
    "$here/stand_in_driver.c" "$work/fail.c" >"$work/out" 2>&1 || {
    tap_plan 1
    tap_not_ok "the stand-in driver compiles" "$work/out"
    exit 1
}
LD_LIBRARY_PATH=$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$program" "$here/devices"
