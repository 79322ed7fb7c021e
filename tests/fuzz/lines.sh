# No batch of texts, lines or JSON lines harms a worker of tokenize: libFuzzer with the sanitizers, from tests/fuzz/lines.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/fuzz/lib.sh"
sources() {
    for source in convert/document_ids convert/encode_batch convert/json_field convert/jsonl data/foreign data/spool \
        data/tokens data/tokens_foreign data/tokens_hdf5 data/tokens_write store/h5 store/h5_attribute base/file_stream; do
        echo "$srcdir/src/$source.c"
    done
}
# shellcheck disable=SC2046
fuzz_build lines $(sources) "$srcdir"/src/text/*.c $(fuzz_base)
fuzz_run -max_len=2048 -dict="$srcdir/tests/fuzz/jsonl.dict" "$srcdir/tests/fuzz/lines"
