# pretrain-data tokenize: threads, ranks, inputs of every kind, going on after a kill: see tokenize.py
. "${srcdir:-.}/tests/lib.sh"
tap_python numpy
tap_hand_over "$python" "$srcdir/tests/cli/tokenize.py"
