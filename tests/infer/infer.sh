#!/bin/sh
# Evaluation and generation against golden logits, the trainer and transformers, in many layouts.
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/infer/infer.py"
