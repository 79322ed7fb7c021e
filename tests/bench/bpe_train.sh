#!/bin/sh
# Training of 32,000 tokens (GPT-2 pattern) on a text, on two threads: ours and other tools, which are fetched from PyPI.
#   tests/bench/bpe_train.sh [--rounds N] [--tools "gigabpe rustbpe tokenizers"] TEXT    in the build folder
# Rounds alternate between the tools, each in a new process; figures are the medians of wall time and of processor time, and the
# largest memory. Merges are compared with those of tokenizers. Nothing fails on a time.
top=$(cd "$(dirname "$0")/../.." && pwd) rounds=3 tools='gigabpe rustbpe tokenizers' text=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift ;;
    --tools) tools=$2; shift ;;
    -*) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
    *) text=$1 ;;
    esac
    shift
done
[ -f "$text" ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q --disable-pip-version-check install $tools || exit 1
python=$work/venv/bin/python
cat "$text" >/dev/null

# timed TOOL COMMAND...: appends "wall cpu kilobytes" to $work/TOOL
timed() {
    timed_tool=$1
    shift
    "$python" - "$@" >>"$work/$timed_tool" <<'END' || exit 1
import os, sys, time
begin = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, '/dev/null', os.O_WRONLY, 0)])
_, status, used = os.wait4(pid, 0)
print(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(status != 0)
END
}

i=0
while [ $i -lt "$rounds" ]; do
    i=$((i + 1))
    timed pretrain "$(pwd)/pretrain-data" tokenizer train --threads 2 --vocab-size 32000 -o "$work/pretrain.json" "$text"
    for tool in $tools; do
        RAYON_NUM_THREADS=2 timed $tool "$python" "$top/tests/bench/bpe_train.py" $tool "$work/$tool.json" "$text"
    done
done

column() { cut -d' ' -f"$1" "$work/$2" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
wall=$(column 1 pretrain) cpu=$(column 2 pretrain)
for tool in pretrain $tools; do
    awk -v t=$tool -v w="$(column 1 $tool)" -v c="$(column 2 $tool)" -v m="$(column 3 $tool)" -v ow="$wall" -v oc="$cpu" 'BEGIN {
        printf "%-11s %7.2f s wall  %7.2f s processor  %5.0f MB   theirs / ours: wall %.2f, processor %.2f\n", t, w, c, m / 1000, w / ow, c / oc }'
done
case " $tools " in *" tokenizers "*) "$python" - "$work" <<'END' ;; esac
import json, sys
def model(name):
    with open(sys.argv[1] + '/' + name + '.json', encoding='utf-8') as f:
        m = json.load(f)['model']
    return m['vocab'], [tuple(p.split(' ') if isinstance(p, str) else p) for p in m['merges']]
ours, theirs = model('pretrain'), model('tokenizers')
print('merges and ids are those of tokenizers' if ours == theirs else 'DIFFERENT from tokenizers')
END
