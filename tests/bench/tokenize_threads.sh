#!/bin/sh
# `pretrain-data tokenize` with one and two threads, jsonl and text, in turns: wall time, MB/s, and what the second thread is worth.
#   tests/bench/tokenize_threads.sh [--rounds N] [--megabytes N] [TEXT]      in the build folder; [5] rounds, [400] MB
# TEXT is repeated to that size; without it, prose of Debian's package sword-text-web. A vocabulary of at most 32,000 is trained
# on it. Output goes to memory. Beside it what two cores of this machine can give: the same work twice, by two processes at once.
# Nothing fails on a time.
top=$(cd "$(dirname "$0")/../.." && pwd) rounds=5 megabytes=400 text=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift ;;
    --megabytes) megabytes=$2; shift ;;
    -*) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
    *) text=$1 ;;
    esac
    shift
done
work=$(mktemp -d -p /dev/shm) || exit 1
trap 'rm -rf "$work"' EXIT
python3 - "$top" "$work" "$megabytes" ${text:+"$text"} <<'END' || exit 1
import json, subprocess, sys
top, work, size, *text = sys.argv[1:]
if text:
    docs = [open(text[0], encoding='utf-8', errors='replace', newline='').read()]
    docs = [docs[0][i:i + 50000] for i in range(0, len(docs[0]), 50000)]
else:
    subprocess.run(['python3', f'{top}/tools/prose.py', '-o', f'{work}/prose.jsonl'], check=True, stdout=subprocess.DEVNULL)
    docs = [json.loads(l)['text'] for l in open(f'{work}/prose.jsonl')]
lines = [json.dumps({'text': d}) + '\n' for d in docs]
times = int(size) * 1000000 // len(''.join(docs).encode()) + 1
with open(f'{work}/once.txt', 'w', newline='') as f:
    f.write('\n'.join(docs))
with open(f'{work}/in.jsonl', 'w') as f:
    f.writelines(lines * times)
with open(f'{work}/in.txt', 'w', newline='') as f:
    f.writelines(['\n'.join(docs) + '\n'] * times)
END
data=$(pwd)/pretrain-data
"$data" tokenizer train --threads 2 --vocab-size 32000 -o "$work/tokenizer.json" "$work/once.txt" >/dev/null || exit 1

now() { date +%s.%N; }
tokenize() {   # tokenize THREADS FORM OUTPUT
    rm -f "$work/$3"
    "$data" tokenize --tokenizer "$work/tokenizer.json" --threads "$1" -o "$work/$3" "$work/in.$2" >/dev/null || exit 1
}
note() { awk -v a="$2" -v b="$(now)" 'BEGIN { print b - a }' >>"$work/$1"; }

i=0
while [ $i -lt "$rounds" ]; do
    i=$((i + 1))
    for form in jsonl txt; do
        for threads in 1 2; do
            begin=$(now)
            tokenize $threads $form out.h5
            note $form-$threads "$begin"
        done
        begin=$(now)
        tokenize 1 $form out.h5 & other=$!
        tokenize 1 $form other.h5
        wait $other || exit 1
        note $form-probe "$begin"
    done
done

for form in jsonl txt; do
    paste "$work/$form-1" "$work/$form-2" "$work/$form-probe" | awk -v form=$form -v bytes="$(stat -c %s "$work/in.$form")" '
        function median(a, n,   i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
            return a[int((n + 1) / 2)]
        }
        { one[NR] = $1; two[NR] = $2; ratio[NR] = $1 / $2; probe[NR] = 2 * $1 / $3 }
        END { a = median(one, NR); b = median(two, NR)
              printf "%-6s %6.2f s (%.0f MB/s) and %6.2f s (%.0f MB/s): two threads %.2f times one; two processes %.2f times\n", form,
                  a, bytes * 1e-6 / a, b, bytes * 1e-6 / b, median(ratio, NR), median(probe, NR) }'
done
