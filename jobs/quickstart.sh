#!/bin/sh
# From a bare Debian 12 machine to a trained model in a few minutes: packages, build, text, tokens, training, merge.
# Run as root from anywhere: bash jobs/quickstart.sh. Safe to run again: a finished stage is quick, a stopped run goes on.
cd "$(dirname "$0")/.." || exit 1
. tools/setup.sh
PATH=$(pwd)/build:$PATH without=
export PATH

# The eight ranks of the deck; root may start them (Open MPI asks, MPICH does not care).
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM

step() {    # step TITLE COMMAND...: say it, do it
    printf '\n== %s\n   %s\n' "$1" "$2"
    sh -c "$2" || { printf 'quickstart: this stage failed: %s\n' "$2" >&2; exit 1; }
}

printf '\n== 1/8 packages\n'
setup_packages $setup_build_packages sword-text-web python3

printf '\n== 2/8 build (in build/)\n'
# Without a GPU the part for it would only cost minutes.
[ -e /dev/nvidiactl ] || without=--without-cuda
setup_build $without || exit 1

step '3/8 text: the World English Bible (package sword-text-web, public domain), a chapter a document' \
    'python3 tools/prose.py -o data/prose.jsonl'
step '4/8 vocabulary: 4,096 tokens, trained on this text' \
    'pretrain-data tokenizer train --vocab-size 4096 -o data/tokenizer.json data/prose.jsonl'
step '5/8 tokens: 2 % of the chapters are held out for validation' \
    'pretrain-data tokenize --tokenizer data/tokenizer.json --validation-fraction 0.02 --validation-output data/validation.h5 -o data/train.h5 data/prose.jsonl'
step '6/8 training on 8 ranks: pipeline 2 x data 2 x tensor 2' \
    'mpirun -np 8 pretrain input/quickstart.nml'
step '7/8 merge: one model that Hugging Face transformers loads' \
    'pretrain-merge runs/quickstart/step_00000300 -o runs/quickstart/model'
printf 'In the beginning God\n' >data/prompts.txt
step '8/8 a sample of what it learned' \
    'pretrain-infer generate --max-new-tokens 120 --temperature 0.7 --top-p 0.9 -o runs/quickstart/sample.jsonl runs/quickstart/model data/prompts.txt'
python3 -c 'import json, textwrap
prompt = open("data/prompts.txt").read().strip()
for line in open("runs/quickstart/sample.jsonl", encoding="utf-8"):
    for part in (prompt + json.loads(line)["text"]).split("\n"):
        print(textwrap.fill(part, 100, initial_indent="   > ", subsequent_indent="   > ") or "   >")'

printf '\nThe run is in runs/quickstart (log.txt, metrics.jsonl, checkpoints), the model in runs/quickstart/model.\n'
awk -F'"loss": ' '{ split($2, a, ","); if (NR == 1) first = a[1]; last = a[1] }
    END { printf "Loss: %.3f at the first step, %.3f at the last.\n", first, last }' runs/quickstart/metrics.jsonl
