# No file of JSON lines harms: libFuzzer with the sanitizers, from tests/fuzz/jsonl. CI: 20 seconds; soak: 20 minutes.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/fuzz/lib.sh"
fuzz_build jsonl "$srcdir/src/convert/jsonl.c" "$srcdir/src/text/utf8.c" $(fuzz_base)
fuzz_run -max_len=400 -dict="$srcdir/tests/fuzz/jsonl.dict" "$srcdir/tests/fuzz/jsonl"
