#!/bin/sh
# The case driver must see what is wrong: each case here fails or is skipped on purpose.
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_plan 8

drive() { srcdir=$srcdir sh "$srcdir/tests/case.sh" "$work/case.t"; }

printf 'prog: tests/unit/launch\nnp: 1 2\nargs: 0 fine\nmatch: ^[12] ranks: fine$\n' >"$work/case.t"
tap_run "a good case" drive
tap_match "has one line per np" "^ok 2 - tests/unit/launch, np 2"

printf 'prog: tests/unit/launch\nnp: 1\nargs: 4\n' >"$work/case.t"
tap_exit "a wrong exit code fails" 1 drive

printf 'prog: tests/unit/launch\nnp: 1\nmatch: elephant\n' >"$work/case.t"
tap_exit "absent text fails" 1 drive

printf 'prog: tests/unit/launch\nnp: 1\nabsent: ranks\n' >"$work/case.t"
tap_exit "unwanted text fails" 1 drive

printf 'prog: tests/unit/launch\nnp: 1\nargs: 77\n' >"$work/case.t"
tap_run "exit 77" drive
tap_match "is a skip" "# SKIP"

printf 'prog: tests/unit/launch\nnp: 1\nmach: ranks\n' >"$work/case.t"
tap_exit "an unknown key fails" 1 drive
tap_done
