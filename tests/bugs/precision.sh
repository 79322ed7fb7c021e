# How other programs went wrong: see precision.py
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/bugs/precision.py"
