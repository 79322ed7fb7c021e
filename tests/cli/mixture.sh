# Several sources, stages and validation sets: see mixture.py
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/cli/mixture.py"
