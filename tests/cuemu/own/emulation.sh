#!/bin/sh
# The emulation of CUDA does what it says: every variant, every order of threads, both streams;
# and the cases of planted.sh without their bugs are right and quiet in all of them.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
orders='forward reverse 1 2 3'
set -- $CUEMU_VARIANTS
tap_plan $(($# * 10))

quiet() {
    run_variant "$@" >"$work/said" 2>&1
    rc=$?
    cat "$work/said"
    [ $rc -eq 0 ] && ! grep -q -e '^not ok' -e WARNING -e 'runtime error' "$work/said"
}
for v in $CUEMU_VARIANTS; do
    for order in $orders; do
        case $order in forward | 2) streams=lazy protect=no ;; *) streams=eager protect=yes ;; esac
        CUEMU_ORDER=$order CUEMU_STREAMS=$streams CUEMU_PROTECT=$protect
        export CUEMU_ORDER CUEMU_STREAMS CUEMU_PROTECT
        tap_run "$v, order $order, $streams streams: the emulation holds" \
            quiet $v "$(variant_path $v ./tests/cuemu/own/emulation)"
        case $order in forward | 2) CUEMU_STREAMS=eager ;; 3) CUEMU_STREAMS=ahead ;; *) CUEMU_STREAMS=lazy ;; esac
        tap_run "$v, order $order, $CUEMU_STREAMS streams: without bugs all is right" \
            quiet $v "$(variant_path $v ./tests/cuemu/own/planted)"
    done
done
tap_done
