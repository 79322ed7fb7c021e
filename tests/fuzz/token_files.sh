# The readers of other programs' token files under libFuzzer, from tests/fuzz/token_files: Megatron, datatrove and its
# metadata, llm.c (two), raw.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/fuzz/lib.sh"
# shellcheck disable=SC2046
fuzz_build token_files $(fuzz_readers) $(fuzz_base)
fuzz_run -max_len=2048 "$srcdir/tests/fuzz/token_files"
