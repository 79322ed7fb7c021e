#!/bin/sh
# Communication of devices, emulated: NCCL (over MPI) and the staged path against the host's
# communication, on 1 to 8 ranks, with lazy and eager streams; mistakes that must be noticed.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
tap_need_mpi
case " $CUEMU_VARIANTS " in *" plain "*) ;; *) tap_skip_all "no emulation without sanitizers" ;; esac

# variant, ranks, backend, streams
plan='plain 1 staged lazy
plain 2 staged lazy
plain 2 staged eager
plain 2 nccl lazy
plain 2 nccl eager
plain 3 staged lazy
plain 3 nccl lazy
plain 4 staged eager
plain 4 nccl eager
plain 8 staged lazy
plain 8 nccl lazy
asan 2 staged lazy
asan 4 nccl lazy'
[ "$PRETRAIN_SOAK" = 1 ] || plan=$(echo "$plan" | grep -v -e '8 staged' -e '3 staged')
n=0
for v in $CUEMU_VARIANTS; do n=$((n + $(echo "$plan" | grep -c "^$v "))); done
tap_plan $((n + 6))

quiet() {
    variant=$1
    shift
    run_variant "$variant" $MPIRUN -n "$@" >"$work/said" 2>&1
    rc=$?
    grep -v '^ok' "$work/said"
    [ $rc -eq 0 ] && ! grep -q -e '^not ok' -e 'runtime error' "$work/said"
}
CUEMU_DEVICES=8
export CUEMU_DEVICES
for v in $CUEMU_VARIANTS; do
    echo "$plan" | grep "^$v " >"$work/plan"
    while read -r _ ranks backend CUEMU_STREAMS; do
        export CUEMU_STREAMS
        start=$(date +%s)
        tap_run "$v, $ranks ranks, $backend, $CUEMU_STREAMS streams" \
            quiet $v $ranks "$(variant_path $v ./tests/cuemu/comm)" $backend </dev/null
        echo "# $(($(date +%s) - start)) s"
    done <"$work/plan"
done

# noticed NAME PATTERN COMMAND...
noticed() {
    name=$1 pattern=$2
    shift 2
    timeout -k 5 20 "$@" >"$work/out" 2>&1 </dev/null
    echo "exit $?" >>"$work/out"
    tap_match "$name" "$pattern"
}
noticed 'NCCL: other counts are noticed' 'of 11 elements .* meets' $MPIRUN -n 2 ./tests/cuemu/comm nccl count
noticed 'NCCL: another order is noticed' 'broadcast .* meets' $MPIRUN -n 2 ./tests/cuemu/comm nccl order
noticed 'NCCL: memory of the host is noticed' 'not memory of device' $MPIRUN -n 2 ./tests/cuemu/comm nccl memory
noticed 'NCCL: a receive without a send waits' 'exit 124' $MPIRUN -n 2 ./tests/cuemu/comm nccl receive
noticed 'staged: a receive without a send waits' 'exit 124' $MPIRUN -n 2 ./tests/cuemu/comm staged receive
CUEMU_DEVICES=1
noticed 'NCCL: two ranks on one GPU are refused' 'Duplicate GPU' $MPIRUN -n 2 ./tests/cuemu/comm nccl
tap_done
