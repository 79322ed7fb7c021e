# For scripts of tests with emulated kernels, after tests/lib.sh: the variants that were built.
#   variant_path VARIANT PROGRAM     the program's file: PROGRAM, PROGRAM_asan, PROGRAM_tsan
#   run_variant VARIANT COMMAND...   with settings of its sanitizer; the detector cannot start
#                                    where addresses are too random: setarch -R helps
#   tap_need_variants                skips all if there are none
tap_need_variants() {
    [ -n "$CUEMU_VARIANTS" ] || tap_skip_all "no C++17 compiler"
}

variant_path() {
    case $1 in
    plain) echo "$2" ;;
    *) echo "$2_$1" ;;
    esac
}

run_variant() {
    variant=$1
    shift
    case $variant in
    asan)
        ASAN_OPTIONS=exitcode=1:detect_stack_use_after_return=0 "$@" ;;
    tsan)
        if [ -z "$calm" ]; then
            calm=no
            "$(variant_path tsan ./tests/cuemu/own/planted)" none >/dev/null 2>&1
            [ $? -eq 2 ] || calm=yes
        fi
        if [ $calm = yes ]; then
            TSAN_OPTIONS=exitcode=66:ignore_noninstrumented_modules=1 setarch "$(uname -m)" -R "$@"
        else
            TSAN_OPTIONS=exitcode=66:ignore_noninstrumented_modules=1 "$@"
        fi ;;
    *)
        "$@" ;;
    esac
}
