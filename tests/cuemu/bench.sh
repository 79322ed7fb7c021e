#!/bin/sh
# The benchmark of tests/gpu at tiny sizes on the emulated device: every row has a figure.
. "${srcdir:-.}/tests/lib.sh"
. "$srcdir/tests/cuemu/own/lib.sh"
tap_need_variants
case " $CUEMU_VARIANTS " in *" plain "*) ;; *) tap_skip_all "no emulation without sanitizers" ;; esac
bench=$builddir/tests/cuemu/bench
tap_plan 9

tap_run "all rows at tiny sizes" "$bench" --tiny
cp "$work/out" "$work/rows"
# item, result, goal, verdict; nothing that is no number, no result without one
rows_hold() {
    awk -F'\t' 'NF != 4 || $4 != "measured" || $2 !~ /[0-9]/ || $2 ~ /^0 / || tolower($2) ~ /nan|inf/ {
            print "row: " $0; bad = 1 } END { exit bad || NR < 20 }' "$work/rows"
}
tap_run "every row has finite figures" rows_hold
for part in "operation, copy" "product, tiny, weight gradient" "own and cuDNN" "backward.*cuDNN"; do
    tap_match "a row for $part" "$part" "$work/rows"
done
# cublasLt and own products, cuDNN and own attention agree
agree() {
    awk -F'\t' '/results differ by/ { sub(/.*differ by /, "", $2); n++; if ($2 + 0 > 1e-6) bad = 1 }
        /own and cuDNN/ { split($2, w, /differs by |, gradients by /); n++
            if (w[2] + 0 > 1e-2 || w[3] + 0 > 1e-2 || w[3] == "") bad = 1 }
        END { exit bad || n < 4 }' "$work/rows"
}
tap_run "both ways to the same result agree" agree
CUEMU_DRIVER=none tap_exit "without a driver: exit 6" 6 "$bench" --device
tap_match "and why" "no NVIDIA driver on this machine"
tap_done
