#!/bin/sh
# Loss of the quick start in bfloat16 against float32, smoothed over 20 steps, by seed and over seeds. Beside it what tells
# rounding from chance: float32 up to step 28 and bfloat16 from there; float32 from weights that were rounded to bfloat16 once.
# Nothing fails on a figure.
#   tests/bench/curve.sh [--steps N] [--threads N] FOLDER SEED...   in the build folder; the first N steps [300], threads [all]
# FOLDER keeps text, tokens and runs: what is there is not made again, so seeds may be made side by side and shown together.
# On a core of 2.8 GHz 60 steps of a seed take 7 minutes. Text: Debian's package sword-text-web.
top=$(cd "$(dirname "$0")/../.." && pwd) steps=300 threads=0 early=28
while [ $# -gt 0 ]; do
    case $1 in
    --steps) steps=$2; shift ;;
    --threads) threads=$2; shift ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 1 ] && [ "$steps" -gt $early ] || { sed -n '2,7s/^# //p' "$0"; exit 2; }
PATH=$(pwd):$PATH folder=$1
shift
mkdir -p "$folder/data" "$folder/runs" && cd "$folder" || exit 1

[ -s data/train.h5 ] || {
    python3 "$top/tools/prose.py" -o data/prose.jsonl &&
        pretrain-data tokenizer train --vocab-size 4096 -o data/tokenizer.json data/prose.jsonl &&
        pretrain-data tokenize --tokenizer data/tokenizer.json --validation-fraction 0.02 \
            --validation-output data/validation.h5 -o data/train.h5 data/prose.jsonl
} || exit 1

train() {   # train NAME STEPS OPTION...: one rank; the learning rate is that of 300 steps
    name=$1 n=$2
    shift 2
    ! grep -q "^done: step $n[,;]" "runs/$name.txt" 2>/dev/null || return 0
    rm -rf "runs/$name"
    pretrain --set run.directory="'runs/$name'" --set train.train_steps="$n" --set optim.decay_steps=300 --set parallel.dp=1 \
        --set parallel.tp=1 --set parallel.pp=1 --set checkpoint.interval=0 --set run.threads="$threads" "$@" \
        "$top/input/quickstart.nml" >"runs/$name.txt" 2>&1 || { tail -n 5 "runs/$name.txt" >&2; exit 1; }
}

for seed; do
    train "$seed-start" 1 --set run.seed="$seed" --set optim.learning_rate=0 --set optim.warmup_steps=0
    [ -d "runs/$seed-rounded" ] ||
        pretrain-merge --dtype bfloat16 -o "runs/$seed-rounded" "runs/$seed-start/step_00000001" >/dev/null || exit 1
    train "$seed-float32" "$steps" --set run.seed="$seed"
    train "$seed-bfloat16" "$steps" --set run.seed="$seed" --set train.dtype="'bfloat16'"
    train "$seed-early" $early --set run.seed="$seed"
    train "$seed-late" "$steps" --set run.seed="$seed" --set train.dtype="'bfloat16'" \
        --set run.resume="'runs/$seed-early/step_000000$early'"
    train "$seed-again" "$steps" --set run.seed="$seed" --set model.vocab_size=4096 --set model.init_from="'runs/$seed-rounded'"
done

python3 - "$steps" $early "$@" <<'END'
import json, sys
from statistics import mean, stdev

steps, early, seeds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]


def lines(name):
    return [json.loads(line) for line in open(f'runs/{name}/metrics.jsonl')]


def compare(what, run):
    print(f'\n{what}\n{"seed":>8}   lowest  highest     mean   jumps (float32)')
    apart = []
    for seed in seeds:
        both = run(seed)[:steps], lines(f'{seed}-float32')[:steps]
        ours, base = [[mean(m['loss'] for m in x[i - 20:i]) for i in range(20, steps + 1)] for x in both]
        jumps = [sum(m['grad_norm'] > 3 for m in x[20:]) for x in both]
        off = [100 * (a / b - 1) for a, b in zip(ours, base)]
        print(f'{seed:>8} {min(off):7.2f}% {max(off):7.2f}% {mean(off):7.2f}%   {jumps[0]} ({jumps[1]})')
        apart.append(off)
    over = [mean(x) for x in zip(*apart)]
    error = f'+- {stdev(mean(x) for x in apart) / len(seeds) ** 0.5:.2f}' if len(seeds) > 1 else ''
    print(f'    over {min(over):7.2f}% {max(over):7.2f}% {mean(over):7.2f}% {error}')


print('smoothed loss against float32; jumps: gradient norms above 3 after step 20, the usual is 0.6')
compare('bfloat16', lambda seed: lines(f'{seed}-bfloat16'))
compare(f'float32, bfloat16 after step {early}', lambda seed: lines(f'{seed}-early') + lines(f'{seed}-late'))
compare('float32 from weights rounded to bfloat16', lambda seed: lines(f'{seed}-again'))
END
