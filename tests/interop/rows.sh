# tools/rows.py: parquet and Arrow files into pretrain-data: see rows.py
. "${srcdir:-.}/tests/lib.sh"
tap_python numpy
"$python" -c 'import pyarrow.parquet' 2>/dev/null || tap_skip_all "no Python with pyarrow"
tap_hand_over "$python" "$srcdir/tests/interop/rows.py" "$srcdir"
