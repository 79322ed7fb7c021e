# pretrain-data tokenize goes on after a kill: see tokenize_resume.py
. "${srcdir:-.}/tests/lib.sh"
tap_python numpy
tap_hand_over "$python" "$srcdir/tests/cli/tokenize_resume.py"
