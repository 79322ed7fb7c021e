# Every wrong deck of tests/decks/bad: exit 2, what it expects is said, nothing is written; some under a launcher
. "${srcdir:-.}/tests/lib.sh"
pretrain=$builddir/pretrain
bad=$srcdir/tests/decks/bad
cd "$work" || exit 1
set -- "$bad"/*.nml
under_mpi='batch layers-sum many-faults not-a-deck required tp-heads'
n_mpi=0
[ -z "$MPIRUN" ] || for name in $under_mpi; do n_mpi=$((n_mpi + 1)); done
tap_plan $(($# + n_mpi + 1))
if [ $# -ge 60 ]; then tap_ok "$# wrong decks"; else tap_not_ok "$# wrong decks, at least 60 are promised"; fi

# judge NAME DECK RC: the text of $work/out; each expected text once, and no file beside out and want
judge() {
    why=
    [ "$3" -eq 2 ] || why="exit $3, expected 2"
    sed -n 's/^! expect: //p' "$2" >want
    [ -s want ] || why="$why; no '! expect:' line"
    while IFS= read -r text; do
        [ "$(grep -c -F -e "$text" out)" -eq 1 ] || why="$why; not once: $text"
    done <want
    [ "$(grep -c '^pretrain: ' out)" -eq 1 ] || why="$why; not one voice"
    [ "$(ls)" = "out
want" ] || why="$why; files: $(ls | tr '\n' ' ')"
    if [ -z "$why" ]; then
        tap_ok "$1"
    else
        echo "# $why"
        tap_not_ok "$1" out
    fi
}

for deck; do
    name=${deck##*/}
    "$pretrain" --check "$deck" >out 2>&1 </dev/null
    judge "$name" "$deck" $?
done
[ "$n_mpi" -eq 0 ] || for name in $under_mpi; do
    timeout 60 $MPIRUN -n 2 "$pretrain" "$bad/$name.nml" >out 2>&1 </dev/null
    judge "$name.nml, two ranks: said once, no run directory" "$bad/$name.nml" $?
done
tap_done
