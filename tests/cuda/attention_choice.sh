# Attention by cuDNN on the emulation, streams eager and lazy, and with the address sanitizer.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants

case " $CUEMU_VARIANTS " in
*" asan "*) tap_plan 3 ;;
*) tap_plan 2 ;;
esac
for streams in eager lazy; do
    CUEMU_STREAMS=$streams
    export CUEMU_STREAMS
    tap_run "$streams streams" run_variant plain ./tests/cuda/attention_choice
done
case " $CUEMU_VARIANTS " in
*" asan "*) tap_run "address sanitizer" run_variant asan ./tests/cuda/attention_choice_asan ;;
esac
tap_done
