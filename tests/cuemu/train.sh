#!/bin/sh
# The whole program with device = 'cuda', emulated: golden cases, training against the CPU, messages.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
tap_need_mpi
tap_python numpy h5py
case " $CUEMU_VARIANTS " in *" plain "*) ;; *) tap_skip_all "no emulation without sanitizers" ;; esac
tap_hand_over "$python" "$srcdir/tests/cuemu/train.py"
