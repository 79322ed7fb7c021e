#!/bin/sh
# usage: case.sh CASE.t. A case is lines "key: value"; lines that begin with # are comments:
#   prog      program, relative to the build folder
#   np        list of rank counts, one test each; without it the program runs alone, no launcher
#   args      arguments, quoted as for the shell; @srcdir@ is the source folder, @tmp@ an empty one
#   exit      expected exit code [0]
#   match     a pattern of grep that the output must hold; repeatable
#   absent    a pattern that it must not hold; repeatable
#   timeout   seconds [60; ten times as many with PRETRAIN_SOAK=1]
# A program that exits 77 is skipped.
case_file=$1
. "${srcdir:-.}/tests/lib.sh"

keys='prog np args exit match absent timeout'
bad=$(sed -e '/^#/d' -e '/^[ 	]*$/d' "$case_file" | while IFS= read -r line; do
    case " $keys " in *" ${line%%:*} "*) ;; *) echo "$line" ;; esac
done)
value() { sed -n "s/^$1:[ 	]*//p" "$case_file"; }
prog=$(value prog) nps=$(value np) want=$(value exit) limit=$(value timeout)
: "${want:=0}" "${limit:=60}"
[ "$PRETRAIN_SOAK" != 1 ] || limit=$((10 * limit))
[ -z "$nps" ] || [ -n "$MPIRUN" ] || tap_skip_all "no MPI launcher"
set -- ${nps:-alone}
tap_plan $#
if [ -n "$bad" ] || [ -z "$prog" ]; then
    echo "Bail out! $case_file: no such key: $bad"
    exit 1
fi

run_case() {
    rm -rf "$work/tmp" && mkdir "$work/tmp" || return 1
    text=$(value args | sed -e "s|@srcdir@|$srcdir|g" -e "s|@tmp@|$work/tmp|g")
    launcher="$MPIRUN -n $1"
    [ "$1" != alone ] || launcher=
    (eval "exec timeout -k 5 $limit $launcher ./$prog $text") >"$work/out" 2>&1 </dev/null
}

# All complaints about $work/out, one a line.
judge() {
    [ "$1" -ne 124 ] || [ "$want" -eq 124 ] || echo "no end after $limit s"
    [ "$1" -eq "$want" ] || echo "exit $1, expected $want"
    value match | while IFS= read -r pattern; do
        grep -q -e "$pattern" "$work/out" || echo "no '$pattern' in the output"
    done
    value absent | while IFS= read -r pattern; do
        ! grep -q -e "$pattern" "$work/out" || echo "'$pattern' in the output"
    done
}

for np; do
    name="$prog, np $np"
    [ "$np" != alone ] || name=$prog
    run_case "$np"
    rc=$?
    if [ $rc -eq 77 ] && [ "$want" -ne 77 ]; then
        tap_skip "$name" "$(tail -1 "$work/out")"
        continue
    fi
    judge $rc >"$work/why"
    if [ -s "$work/why" ]; then
        tap_not_ok "$name" "$work/why" "$work/out"
    else
        tap_ok "$name"
    fi
done
tap_done
