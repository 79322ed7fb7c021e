#!/bin/sh
# One voice for one error: the agreed status is the exit code, and one message is printed.
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_plan 37

# said NAME LINES [TEXT]: so many lines of ours, and one holds TEXT
said() {
    lines=$(grep -c '^pretrain: ' "$work/out")
    if [ "$lines" -eq "$2" ] && { [ -z "$3" ] || grep -q -e "$3" "$work/out"; }; then
        tap_ok "$1"
    else
        echo "# $lines messages, expected $2 with '$3'"
        tap_not_ok "$1" "$work/out"
    fi
}

agree() { timeout 60 $MPIRUN -n "$1" tests/parallel/agree "$2"; }

for n in 1 2 4; do
    last=$((n - 1)) second=$((n > 1))
    tap_exit "np $n: nobody fails" 0 agree $n none
    said "np $n: nothing is said" 0
    tap_exit "np $n: one rank fails" 3 agree $n one
    said "np $n: once" 1 "^pretrain: rank $last cannot read /some/file: it is short$"
    tap_exit "np $n: all but the first fail alike" 3 agree $n same
    said "np $n: the lowest speaks" 1 "^pretrain: rank $second has no file$"
    tap_exit "np $n: two fail, the worst counts" 6 agree $n two
    said "np $n: the worst speaks" 1 "^pretrain: rank $last has no memory$"
    tap_exit "np $n: the caller speaks" 0 agree $n silent
    said "np $n: so agree does not" 0
done

tap_exit "a group without the speaker agrees" 3 agree 4 group
said "and says so once" 1 "^pretrain: half of us failed$"

# the launcher's own exit code is not ours to choose
for mode in abort die; do
    agree 4 $mode >"$work/out" 2>&1
    rc=$?
    if [ $rc -ne 0 ] && [ $rc -ne 124 ]; then
        tap_ok "$mode ends all ranks"
    else
        tap_not_ok "$mode ends all ranks" "$work/out"
    fi
done
said "die says which rank" 1 "^pretrain: rank 3: a peer is gone$"
agree 4 abort >"$work/out" 2>&1
said "abort says one line" 1 "^pretrain: rank 3 gives up$"
tap_exit "one rank alone ends with the code of abort" 5 timeout 60 tests/parallel/agree abort
tap_done
