#!/bin/sh
# The window on offloaded activations: streams in three orders, both sanitizers, the race detector.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
plan='plain eager
plain lazy
plain ahead
asan lazy
tsan eager
tsan ahead'
n=0
for v in $CUEMU_VARIANTS; do n=$((n + $(echo "$plan" | grep -c "^$v "))); done
[ $n -gt 0 ] || tap_skip_all "no such variant"
tap_plan $n

quiet() {
    run_variant "$@" >"$work/said" 2>&1
    rc=$?
    cat "$work/said"
    [ $rc -eq 0 ] && ! grep -q -e '^not ok' -e WARNING -e 'runtime error' "$work/said"
}
for v in $CUEMU_VARIANTS; do
    echo "$plan" | grep "^$v " >"$work/plan"
    while read -r _ CUEMU_STREAMS; do
        export CUEMU_STREAMS
        tap_run "$v, $CUEMU_STREAMS streams: blocks are read as they were written" \
            quiet $v "$(variant_path $v ./tests/cuemu/window)" </dev/null
    done <"$work/plan"
done
tap_done
