# For the scripts beside this file, behind tests/lib.sh: two checks, that the target is built, and that no input harms
# it in FUZZ_SECONDS [20; soak: 1200] or FUZZ_RUNS. Needs clang.
[ "$PRETRAIN_SOAK" != 1 ] || : "${FUZZ_SECONDS:=1200}"
: "${FUZZ_CC:=clang}" "${FUZZ_SECONDS:=20}"
echo 'int LLVMFuzzerTestOneInput(const char *p, long n); int LLVMFuzzerTestOneInput(const char *p, long n) { return n < 0 && *p; }' \
    >"$work/try.c"
$FUZZ_CC -fsanitize=fuzzer,address,undefined -o "$work/try" "$work/try.c" 2>/dev/null ||
    tap_skip_all "no clang with libFuzzer"
tap_plan 2
sed /HAVE_SENTENCEPIECE/d config.h >"$work/config.h" # its library is not ours

fuzz_flags() { sed -n "s/^$1 = //p" "$builddir/Makefile"; }
fuzz_base() {
    for fuzz_f in arena box clock dtype err file hash log rng trace; do
        echo "$srcdir/src/base/$fuzz_f.c"
    done
}
fuzz_readers() {
    for fuzz_f in data/foreign data/sampler data/tokens data/tokens_foreign data/tokens_hdf5 store/h5 store/h5_attribute \
        text/utf8; do
        echo "$srcdir/src/$fuzz_f.c"
    done
}

# fuzz_build NAME SOURCE...: tests/fuzz/NAME.c with these
fuzz_build() {
    fuzz_name=$1
    shift
    # shellcheck disable=SC2046
    tap_run 'the target is built' $FUZZ_CC -std=gnu11 -g -O1 -Wall -Werror -include "$work/config.h" -I. \
        -I"$srcdir/src" -I"$srcdir" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -fsanitize-coverage-ignorelist="$srcdir/tests/fuzz/uncounted.txt" \
        $(fuzz_flags HDF5_CPPFLAGS) $(fuzz_flags XXHASH_CFLAGS) -o "$work/fuzz" "$srcdir/tests/fuzz/$fuzz_name.c" "$@" \
        $(fuzz_flags HDF5_LIBS) $(fuzz_flags XXHASH_LIBS) -lpcre2-8 -lutf8proc -ljansson -lm
}

# fuzz_run OPTION... FOLDER: from the inputs in FOLDER, which stays as it is
fuzz_run() {
    mkdir "$work/found"
    tap_run 'no input harms it' "$work/fuzz" -max_total_time="$FUZZ_SECONDS" ${FUZZ_RUNS:+-runs="$FUZZ_RUNS"} -timeout=20 \
        -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$work/found/" "$work/found" "$@"
    sed -n 's/^stat::number_of_executed_units: /# inputs: /p' "$work/out"
    for fuzz_f in "$work"/found/crash-* "$work"/found/timeout-* "$work"/found/oom-*; do
        [ ! -f "$fuzz_f" ] || { echo "# $fuzz_f, base64:" && base64 "$fuzz_f" | sed 's/^/#   /'; }
    done
    tap_done
}
