# A vocabulary of a real text is the library's: see tokenizer_train.py
. "${srcdir:-.}/tests/lib.sh"
tap_python tokenizers
tap_hand_over "$python" "$srcdir/tests/interop/tokenizer_train.py" "$srcdir"
