#!/bin/sh
# Every operation of the CUDA backend, emulated, against the reference: in float32, bfloat16 and
# float16, five orders of threads, both streams, both sanitizers and the race detector.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants

# variant, order, streams, arguments
plan='plain forward eager
plain reverse lazy --small
plain 1 lazy --small
plain 2 eager --small
plain 3 lazy --small
asan reverse eager --small
tsan 1 lazy --small bfloat16'
n=0
for v in $CUEMU_VARIANTS; do n=$((n + $(echo "$plan" | grep -c "^$v "))); done
tap_plan $n

quiet() {
    run_variant "$@" >"$work/said" 2>&1
    rc=$?
    grep -v '^ok' "$work/said"
    [ $rc -eq 0 ] && ! grep -q -e '^not ok' -e WARNING -e 'runtime error' "$work/said"
}
for v in $CUEMU_VARIANTS; do
    echo "$plan" | grep "^$v " >"$work/plan"
    while read -r _ CUEMU_ORDER CUEMU_STREAMS arguments; do
        export CUEMU_ORDER CUEMU_STREAMS
        start=$(date +%s)
        tap_run "$v, order $CUEMU_ORDER, $CUEMU_STREAMS streams: operations agree" \
            quiet $v "$(variant_path $v ./tests/cuemu/ops)" $arguments </dev/null
        echo "# $(($(date +%s) - start)) s"
    done <"$work/plan"
done
tap_done
