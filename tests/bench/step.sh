#!/bin/sh
# One training step: tokens/s, share of the peak measured in the same run, and PyTorch's figures beside ours when asked.
#   tests/bench/step.sh [--torch PYTHON] [--rounds N]     in the build folder; PYTHON has torch
# Model: hidden 512, 8 blocks, 8 heads, ffn 1408, vocabulary 32000, sequence 512, micro-batch 4; fp32, two threads.
# Rounds alternate between the programs; figures are medians over rounds of each run's median step. Nothing fails on a time.
top=$(cd "$(dirname "$0")/../.." && pwd) rounds=3 torch=
while [ $# -gt 0 ]; do
    case $1 in
    --torch) torch=$2; shift ;;
    --rounds) rounds=$2; shift ;;
    *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
    esac
    shift
done
PATH=$(pwd):$PATH
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
python3 - "$work/raw" <<'END'
import random, struct, sys
random.seed(1)
open(sys.argv[1], 'wb').write(struct.pack('<400000H', *(random.randrange(32000) for _ in range(400000))))
END
pretrain-data import --dtype uint16 --vocab-size 32000 --eod 31999 -o "$work/train.h5" "$work/raw" >/dev/null || exit 1
cat >"$work/step.nml" <<END
&run directory = '$work/run', resume = 'auto', threads = 2 /
&train train_steps = 8, sequence_length = 512, micro_batch_size = 4, global_batch_size = 4 /
&model hidden_size = 512, intermediate_size = 1408, num_hidden_layers = 8, num_attention_heads = 8 /
&data train = '$work/train.h5' /
&optim learning_rate = 3e-4, lr_schedule = 'constant' /
&checkpoint interval = 0, save_final = .false. /
END

median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

ours() {
    rm -rf "$work/run"
    pretrain "$work/step.nml" >/dev/null || exit 1
    sed -n 's/.*"tokens_per_second": \([0-9.]*\).*"peak_fraction": \([0-9.]*\).*/\1 \2/p' "$work/run/metrics.jsonl" |
        tail -n +3 | sort -n | awk '{ t[NR] = $1; p[NR] = $2 } END { i = int((NR + 1) / 2); print t[i], p[i] }'
}

i=0
while [ $i -lt "$rounds" ]; do
    i=$((i + 1))
    ours >>"$work/ours"
    [ -z "$torch" ] || for how in eager compiled; do
        "$torch" "$top/tests/bench/step_torch.py" $how 2>/dev/null | tail -n 1 >>"$work/$how"
    done
done
tokens=$(cut -d' ' -f1 "$work/ours" | median) share=$(cut -d' ' -f2 "$work/ours" | median)
awk -v t="$tokens" -v s="$share" 'BEGIN { printf "pretrain          %8.0f tokens/s   %4.1f %% of the measured fp32 peak\n", t, 100 * s }'
[ -z "$torch" ] || for how in eager compiled; do
    other=$(median <"$work/$how")
    awk -v t="$tokens" -v o="$other" -v h="$how" 'BEGIN { printf "PyTorch %-9s %8.0f tokens/s   ours / PyTorch = %.2f\n", h, o, t / o }'
done
