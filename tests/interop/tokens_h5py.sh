# h5py reads our token files; PYTHON chooses the interpreter
. "${srcdir:-.}/tests/lib.sh"
for python in "${PYTHON:-python3}" /usr/bin/python3; do
    "$python" -c 'import h5py, numpy' 2>/dev/null || continue
    "$python" "$srcdir/tests/interop/tokens_h5py.py" "$builddir/pretrain-data" "$work"
    exit
done
tap_skip_all "no Python with h5py and numpy"
