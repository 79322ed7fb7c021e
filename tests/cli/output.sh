# What a run writes: see output.py
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/cli/output.py"
