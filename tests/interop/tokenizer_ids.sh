# Our ids and texts are those of the `tokenizers` library: see tokenizer_ids.py
. "${srcdir:-.}/tests/lib.sh"
tap_python tokenizers
tap_hand_over "$python" "$srcdir/tests/interop/tokenizer_ids.py" "$srcdir"
