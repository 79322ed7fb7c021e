# No tokenizer.json crashes: libFuzzer with the sanitizers, from tests/fuzz/corpus. CI: 10 seconds;
# PRETRAIN_SOAK=1: 20 minutes.
. "${srcdir:-.}/tests/lib.sh"
echo 'int LLVMFuzzerTestOneInput(const char *p, long n); int LLVMFuzzerTestOneInput(const char *p, long n) { return n < 0 && *p; }' \
    >"$work/try.c"
${FUZZ_CC:=clang} -fsanitize=fuzzer,address,undefined -o "$work/try" "$work/try.c" 2>/dev/null ||
    tap_skip_all "no clang with libFuzzer"
tap_plan 2
# Not what libsentencepiece does with a model.
sed /HAVE_SENTENCEPIECE/d config.h >"$work/config.h"
flags="-std=gnu11 -g -O1 -include $work/config.h -I. -I$srcdir/src -I$srcdir"
for f in "$srcdir"/src/text/*.c "$srcdir"/src/base/arena.c "$srcdir"/src/base/err.c "$srcdir"/src/base/trace.c \
    "$srcdir"/src/base/clock.c "$srcdir"/src/base/file.c "$srcdir"/src/base/log.c; do
    sources="$sources $f"
done
tap_run "the target is built" $FUZZ_CC $flags -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -o "$work/fuzz" "$srcdir/tests/fuzz/tokenizer.c" $sources \
    -lpcre2-8 -lutf8proc -ljansson -lm
seconds=10
[ "$PRETRAIN_SOAK" != 1 ] || seconds=1200
mkdir "$work/found"
tap_run "nothing crashes in $seconds seconds" "$work/fuzz" -max_total_time=$seconds -max_len=6000 -timeout=20 \
    -rss_limit_mb=3000 -print_final_stats=1 -dict="$srcdir/tests/fuzz/tokenizer.dict" \
    -artifact_prefix="$work/found/" "$work/found" "$srcdir/tests/fuzz/corpus"
sed -n 's/^stat::number_of_executed_units: /# runs: /p' "$work/out"
tap_done
