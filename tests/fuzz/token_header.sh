# No header of an HDF5 file harms: token files with anything for their datasets and attributes, under libFuzzer.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/fuzz/lib.sh"
# shellcheck disable=SC2046
fuzz_build token_header $(fuzz_readers) $(fuzz_base)
fuzz_run -max_len=120 "$srcdir/tests/fuzz/token_header"
