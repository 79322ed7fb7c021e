# How other programs went wrong with texts and tokenizers: see text.py
. "${srcdir:-.}/tests/lib.sh"
tap_python numpy h5py
tap_hand_over "$python" "$srcdir/tests/bugs/text.py"
