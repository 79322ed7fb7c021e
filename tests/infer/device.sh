#!/bin/sh
# Evaluation and generation with device = 'cuda', emulated.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
tap_need_mpi
tap_python numpy h5py
case " $CUEMU_VARIANTS " in *" plain "*) ;; *) tap_skip_all "no emulation without sanitizers" ;; esac
tap_hand_over "$python" "$srcdir/tests/infer/device.py"
