# The commands, decks and programs of doc/tutorial.md and doc/checkpoint.md do what is said there: see docs.py
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
tap_python json
tap_hand_over "$python" "$srcdir/tests/interop/docs.py" "$srcdir"
