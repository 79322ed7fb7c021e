# Where the data comes from: see sources.py
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/cli/sources.py"
