# For test scripts that print TAP; source it first: . "${srcdir:-.}/tests/lib.sh"
# They run in the build folder. Afterwards: $srcdir absolute, $work an empty folder of the test's own,
# removed at the end.
#   tap_plan N
#   tap_run NAME COMMAND...          holds if the command exits 0
#   tap_exit NAME CODE COMMAND...    holds if it exits CODE; the output stays in $work/out
#   tap_match NAME PATTERN [FILE]    holds if grep finds PATTERN in FILE [$work/out]
#   tap_absent NAME PATTERN [FILE]   holds if not
#   tap_skip NAME WHY; tap_skip_all WHY
#   tap_python MODULE...             $python has the modules, else all is skipped
#   tap_hand_over COMMAND...         the command prints the TAP; BIN is our build folder, TEST_TMP is $work
#   mpi N COMMAND...                 under the launcher; tap_need_mpi skips all if there is none
#   tap_done                         the last line
srcdir=$(cd "${srcdir:-.}" && pwd)
builddir=$(pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/pretrain-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tap_planned=0 tap_made=0 tap_failed=0

tap_plan() {
    tap_planned=$1
    echo "1..$1"
}

tap_ok() {
    tap_made=$((tap_made + 1))
    echo "ok $tap_made - $1"
}

# tap_not_ok NAME [FILE...]: the last lines of the files say why
tap_not_ok() {
    tap_made=$((tap_made + 1)) tap_failed=$((tap_failed + 1))
    echo "not ok $tap_made - $1"
    shift
    for tap_file; do
        tail -n 200 "$tap_file" | sed 's/^/#   /'
    done
}

tap_skip() {
    tap_made=$((tap_made + 1))
    echo "ok $tap_made - $1 # SKIP $2"
}

tap_skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

tap_python() {
    python=${PYTHON:-python3}
    "$python" -c "import $(echo "$*" | tr ' ' ,)" 2>/dev/null || tap_skip_all "no Python with $*"
}

tap_hand_over() {
    BIN=$builddir TEST_TMP=$work PYTHONDONTWRITEBYTECODE=1 "$@"
    exit
}

tap_exit() {
    tap_name=$1 tap_want=$2
    shift 2
    "$@" >"$work/out" 2>&1 </dev/null
    tap_rc=$?
    if [ $tap_rc -eq "$tap_want" ]; then
        tap_ok "$tap_name"
    else
        echo "# exit $tap_rc, expected $tap_want: $*"
        tap_not_ok "$tap_name" "$work/out"
    fi
}

tap_run() {
    tap_name=$1
    shift
    tap_exit "$tap_name" 0 "$@"
}

tap_match() {
    if grep -q -e "$2" "${3:-$work/out}"; then
        tap_ok "$1"
    else
        echo "# no '$2' in:"
        tap_not_ok "$1" "${3:-$work/out}"
    fi
}

tap_absent() {
    if grep -q -e "$2" "${3:-$work/out}"; then
        echo "# '$2' in:"
        tap_not_ok "$1" "${3:-$work/out}"
    else
        tap_ok "$1"
    fi
}

mpi() {
    tap_np=$1
    shift
    $MPIRUN -n "$tap_np" "$@"
}

tap_need_mpi() {
    [ -n "$MPIRUN" ] || tap_skip_all "no MPI launcher"
}

tap_done() {
    [ "$tap_made" -eq "$tap_planned" ] || echo "# $tap_planned tests planned, $tap_made made"
    [ "$tap_failed" -eq 0 ] && [ "$tap_made" -eq "$tap_planned" ]
    exit
}
