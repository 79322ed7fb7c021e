. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python numpy torch transformers
tap_hand_over "$python" "$srcdir/tests/interop/logits.py"
