# For tests/gpu/run.sh: its table, and runs of the built programs. Expects $top, $build, $work, and
# the rows so far in $work/rows: item, result, goal, verdict, with tabs between.

say() {
    echo "== $1" >&2
}

# row ITEM RESULT GOAL VERDICT; verdicts: passed, failed, skipped, measured
row() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${3:--}" "$4" >>"$work/rows"
    printf '   %-8s %s: %s\n' "$4" "$1" "$2" >&2
}

# judge ITEM RESULT GOAL COMMAND...: passed if the command holds
judge() {
    judge_item=$1 judge_result=$2 judge_goal=$3
    shift 3
    if "$@"; then judge_verdict=passed; else judge_verdict=failed; fi
    row "$judge_item" "$judge_result" "$judge_goal" "$judge_verdict"
}

at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 >= b + 0) }'
}

# What a program said: its first complaint, else its last line; without tabs.
last_line() {
    { grep -e '^pretrain[-a-z]*: ' "$1" | head -n 1 | grep . || grep -v '^ *$' "$1" | tail -n 1; } |
        tr '\t' ' ' | cut -c 1-160
}

# limited SECONDS LOG COMMAND...
limited() {
    limited_seconds=$1 limited_log=$2
    shift 2
    timeout "$limited_seconds" "$@" >"$limited_log" 2>&1 </dev/null
}

# tap ITEM LOG EXIT: a row of what a program that prints TAP said
tap() {
    tap_item=$1 tap_log=$2 tap_exit=$3
    if grep -q '^1\.\.0' "$tap_log"; then
        row "$tap_item" "$(sed -n 's/^1\.\.0 *# *SKIP *//p' "$tap_log")" - skipped
        return
    fi
    tap_good=$(grep -c '^ok' "$tap_log") tap_bad=$(grep -c '^not ok' "$tap_log")
    tap_result="$tap_good hold, $tap_bad do not"
    [ "$tap_exit" -ne 124 ] || tap_result="$tap_result; out of time"
    if [ "$tap_good" -eq 0 ] && [ "$tap_bad" -eq 0 ]; then
        tap_result="exit $tap_exit: $(last_line "$tap_log")"
    elif [ "$tap_exit" -ne 0 ] && [ "$tap_bad" -eq 0 ]; then
        tap_result="$tap_result; exit $tap_exit: $(last_line "$tap_log")"
    elif [ "$tap_bad" -gt 0 ]; then
        tap_result="$tap_result: $(sed -n 's/^not ok [0-9]* - //p' "$tap_log" | head -n 1 | cut -c 1-120)"
    fi
    judge "$tap_item" "$tap_result" "all" test "$tap_exit" -eq 0 -a "$tap_bad" -eq 0
}

# train NAME RANKS DECK [--set ...]: a run in $work/NAME; its log beside
train() {
    train_name=$1 train_ranks=$2 train_deck=$3
    shift 3
    limited "$train_seconds" "$work/$train_name.log" $MPIRUN -n "$train_ranks" "$build/pretrain" \
        "$train_deck" --set "run.directory = '$work/$train_name'" "$@"
}

# numbers NAME KEY: of every step of a run
numbers() {
    sed -n "s/.*\"$2\": \([-+0-9.eE]*\).*/\1/p" "$work/$1/metrics.jsonl"
}

# median_after SKIP: of the numbers on standard input
median_after() {
    tail -n +$(($1 + 1)) | sort -g | awk '{ a[NR] = $1 } END { if (NR) print a[int((NR + 1) / 2)] }'
}

# apart NAME NAME: the largest relative difference of two loss curves, means over 20 steps
apart() {
    numbers "$1" loss >"$work/a"
    numbers "$2" loss >"$work/b"
    paste "$work/a" "$work/b" | awk '
        NF != 2 { bad = 1 }
        { a[NR] = $1; b[NR] = $2; sa += $1; sb += $2 }
        NR > 20 { sa -= a[NR - 20]; sb -= b[NR - 20] }
        NR >= 20 { d = (sa - sb) / sb; if (d < 0) d = -d; if (!(d <= most)) most = d }
        END { if (bad || NR < 200) print "nan"; else printf "%.2e\n", most }'
}

# The table and the counts; exit 1 if a row failed.
finish() {
    awk -F'\t' '
        { for (i = 1; i < 4; i++) { if (length($i) > w[i]) w[i] = length($i) }
          line[NR] = $0; n[$4]++ }
        function show(s,    f) {
            split(s, f, "\t")
            printf "%-*s  %-*s  %-*s  %s\n", w[1], f[1], w[2], f[2], w[3], f[3], f[4]
        }
        END {
            if (w[3] < 4) w[3] = 4
            show("item\tresult\tgoal\tverdict")
            for (i = 1; i <= NR; i++) show(line[i])
            printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"]
            exit n["failed"] > 0 || n["passed"] == 0
        }' "$work/rows"
}
