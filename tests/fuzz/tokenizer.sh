# No tokenizer.json and no rank file crashes: libFuzzer with the sanitizers, from tests/fuzz/corpus.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/fuzz/lib.sh"
# shellcheck disable=SC2046
fuzz_build tokenizer "$srcdir"/src/text/*.c $(fuzz_base)
fuzz_run -max_len=6000 -dict="$srcdir/tests/fuzz/tokenizer.dict" "$srcdir/tests/fuzz/corpus"
