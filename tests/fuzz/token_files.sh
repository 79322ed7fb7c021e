# The readers of other programs' token files under libFuzzer, for FUZZ_SECONDS [5]; soak: 300. Needs clang.
. "${srcdir:-.}/tests/lib.sh"
[ -z "$PRETRAIN_SOAK" ] || : "${FUZZ_SECONDS:=300}"
clang=${CLANG:-clang}
echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return !p && n; }' >"$work/try.c"
"$clang" -fsanitize=fuzzer,address,undefined "$work/try.c" -o "$work/try" 2>/dev/null ||
    tap_skip_all "no clang with libFuzzer"
flags() { sed -n "s/^$1 = //p" "$builddir/Makefile"; }
cd "$srcdir" || exit 1
tap_plan 2
# shellcheck disable=SC2046
tap_run 'build' "$clang" -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -std=gnu11 -Wall -Werror \
    -I "$builddir" -include config.h -I src -I . $(flags HDF5_CPPFLAGS) $(flags XXHASH_CFLAGS) \
    tests/fuzz/token_files.c src/data/foreign.c src/data/sampler.c src/data/tokens.c src/data/tokens_foreign.c \
    src/data/tokens_hdf5.c src/store/h5.c src/store/h5_attribute.c src/text/utf8.c src/base/arena.c src/base/box.c src/base/clock.c \
    src/base/dtype.c src/base/err.c src/base/file.c src/base/hash.c src/base/log.c src/base/rng.c src/base/trace.c \
    -o "$work/fuzz" $(flags HDF5_LIBS) $(flags XXHASH_LIBS) -lm
# good files to start from: Megatron, datatrove, metadata, llm.c (two), raw
mkdir "$work/corpus"
z8='\0\0\0\0\0\0\0'
printf "\\0MMIDIDX\\0\\0\\001$z8\\010\\002$z8\\003$z8\\144\\0\\0\\0\\144\\0\\0\\0\\0$z8\\310$z8\\0$z8\\001$z8\\002$z8" >"$work/corpus/megatron"
printf "\\001\\003$z8\\003$z8\\310$z8" >"$work/corpus/datatrove"
printf '\002name|2\n200\n200' >"$work/corpus/metadata"
{ printf '\003\210\330\064\001\001\0\0\0\004\0\0\0' && head -c 1012 /dev/zero && printf 'abcdefgh'; } >"$work/corpus/llmc"
{ printf '\003\241\331\064\001\007\0\0\0\002\0\0\0' && head -c 1012 /dev/zero && printf 'a\0\0\0b\0\0\0'; } >"$work/corpus/llmc32"
printf '\004a\0\007\0b\0\007\0c\0d\0e\0f\0g\0h\0i\0j\0' >"$work/corpus/raw"
cd "$work" || exit 1
tap_run 'no input harms it' ./fuzz -seed=1 -max_len=2048 -max_total_time="${FUZZ_SECONDS:-5}" -timeout=20 -artifact_prefix="$work/" corpus
grep -h 'cov:\|DONE\|Done' out | tail -2 | sed 's/^/# /'
tap_done
