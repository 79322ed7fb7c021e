# Batches of texts, lines and JSON lines under libFuzzer, for FUZZ_SECONDS [5]; soak: 300. Needs clang.
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
    tests/fuzz/lines.c src/convert/document_ids.c src/convert/encode_batch.c src/convert/json_field.c src/convert/jsonl.c \
    src/data/foreign.c src/data/spool.c src/data/tokens.c src/data/tokens_foreign.c src/data/tokens_hdf5.c \
    src/data/tokens_write.c src/store/h5.c src/store/h5_attribute.c src/text/*.c src/base/arena.c src/base/box.c \
    src/base/clock.c src/base/dtype.c src/base/err.c src/base/file.c src/base/file_stream.c src/base/hash.c src/base/log.c \
    src/base/rng.c src/base/trace.c \
    -o "$work/fuzz" $(flags HDF5_LIBS) $(flags XXHASH_LIBS) $(flags JANSSON_LIBS) $(flags PCRE2_LIBS) $(flags UTF8PROC_LIBS) -lm
mkdir "$work/corpus"
printf '\001{"id":1,"text":"a\\\\n\\\\u00e9\\\\ud83d\\\\ude00 b","m":{"k":[1.5e3,-0,true,null,{}]}}' >"$work/corpus/json"
printf '\005{"text":"a"}\n\n {"text":"\377\\\\u0000"}\r\n' >"$work/corpus/lines_of_json"
printf '\006one\n\r\n\ntwo \303\244\r\nthree' >"$work/corpus/lines"
printf '\004caf\303\251 \377\360\237\231 \344\270\255\n' >"$work/corpus/text"
cd "$work" || exit 1
tap_run 'no input harms it' ./fuzz -seed=1 -max_len=2048 -max_total_time="${FUZZ_SECONDS:-5}" -timeout=20 -artifact_prefix="$work/" corpus
grep -h 'cov:\|DONE\|Done' out | tail -2 | sed 's/^/# /'
tap_done
