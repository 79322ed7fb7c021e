# pretrain-data tokenizer train: merges and ids of the library tokenizers (data of tests/text/make_bpe_train.py), any
# number of threads, what is refused
. "${srcdir:-.}/tests/lib.sh"
data=$builddir/pretrain-data
cases=$srcdir/tests/text/bpe_train
cd "$work" || exit 1
tap_plan $(($(ls "$cases"/*.args | wc -l) + 44))

train() { "$data" tokenizer train "$@"; }

# holds NAME COMMAND...
holds() {
    holds_name=$1
    shift
    if "$@" >/dev/null 2>&1; then tap_ok "$holds_name"; else tap_not_ok "$holds_name"; fi
}

# Tokens that are no plain bytes, then merges, as in *.want; $2: how many special tokens come first, -1: all tokens.
tokens() {
    sed -e '1,/^"vocab":{$/d' -e '/^"merges":\[/d' -e 's/\(:[0-9]*\)[},]*$/\1/' -e 's/"[],}]*$/"/' "$1" |
        awk -F: -v n="$2" '/"$/ || n < 0 || $NF < n || $NF >= n + 256'
}

# ---- as the library
for args in "$cases"/*.args; do
    name=$(basename "$args" .args)
    eval "train -o got.json $(cat "$args") $cases/$name.[tj]*" >out 2>&1
    n=$(grep -o '"content"' got.json | wc -l)
    [ "$name" != alphabet ] || n=-1
    tokens got.json "$n" >got
    if cmp got "$cases/$name.want" >why 2>&1; then tap_ok "$name"; else tap_not_ok "$name" out why got; fi
    rm -f got.json
done

# ---- threads, several files, a long line
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "%d words of a text, x%d = %d;%s", i, i % 1000, i * 7919 % 10007, i % 3 ? "\n" : " " }' >a.txt
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "one long line %d ", i % 977 }' >b.txt
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "{\"text\": \"document %d\\n\\n is \\u00e4 or %c\", \"body\": \"only %d\"}\n", i, 65 + i % 26, i }' >c.jsonl
tap_run 'one thread' train --threads 1 --vocab-size 1500 -o one.json a.txt b.txt c.jsonl
tap_match 'says what it made' '^one.json: 1,500 tokens (1 special, 1,243 merges) of [0-9,]* different pieces in [0-9,]* bytes'
for n in 2 3 16; do
    train --threads $n --vocab-size 1500 -o more.json a.txt b.txt c.jsonl >/dev/null 2>&1
    holds "$n threads: the same bytes" cmp one.json more.json
done
OMP_NUM_THREADS=2 train --vocab-size 1500 -o more.json c.jsonl a.txt b.txt >/dev/null 2>&1
holds 'the files in another order' cmp one.json more.json
cat a.txt b.txt >ab.txt
train --vocab-size 1500 -o more.json ab.txt c.jsonl >/dev/null 2>&1
holds 'two texts in one file' cmp one.json more.json
tap_run 'another field' train --vocab-size 300 --field body -o body.json c.jsonl
holds 'is what counts' sh -c 'grep -q "^.only.:" body.json && ! grep -q "^.document" body.json'
tap_run 'fewer pairs than asked' train --vocab-size 300 -o few.json --min-frequency=100000 a.txt
tap_match 'a warning says so' 'warning: --vocab-size 300 is not reached: no pair of tokens is left that occurs 100000 times; 2[0-9]* tokens'
printf 'a' >one.txt
tap_run 'a text of one byte' train --vocab-size 300 -o few.json one.txt
tap_match 'gives no merges' 'not reached: no pair of tokens is left that occurs 1 times; 257 tokens'

# ---- the file
tap_run 'a vocabulary of bytes' train --vocab-size 257 -o bytes.json one.txt
holds 'is valid' "${PYTHON:-python3}" -c '
import json
t = json.load(open("bytes.json", encoding="utf-8"))
assert sorted(t["model"]["vocab"].values()) == list(range(257)) and t["model"]["merges"] == []
assert [(a["id"], a["content"], a["special"]) for a in t["added_tokens"]] == [(0, "<|endoftext|>", True)]
assert t["pre_tokenizer"] == {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}'
tap_run 'another pattern' train --vocab-size 257 --pattern qwen2 -o qwen2.json one.txt
holds 'is written as a regular expression' grep -q '"Regex":".*|\\\\p{N}| ' qwen2.json
tap_run 'odd special tokens' train --vocab-size 300 --special '"\' --special 'a b' --special '日本' -o odd.json one.txt
holds 'are written as text' "${PYTHON:-python3}" -c '
import json
t = json.load(open("odd.json", encoding="utf-8"))
assert [a["content"] for a in t["added_tokens"]] == ["\"\\", "a b", "日本"] and t["model"]["vocab"]["日本"] == 2'

# ---- refused: the code, one line with the text, and no file
refused() {
    refused_name=$1 refused_code=$2 refused_text=$3
    shift 3
    rm -f new.json
    "$@" >out 2>&1 </dev/null
    refused_rc=$?
    if [ $refused_rc -eq "$refused_code" ] && grep -q -e "$refused_text" out && [ "$(wc -l <out)" -eq 1 ] &&
        ! ls new* >/dev/null 2>&1; then
        tap_ok "$refused_name"
    else
        echo "# exit $refused_rc, expected $refused_code, one line with '$refused_text'"
        tap_not_ok "$refused_name" out
    fi
}
refused 'no size' 2 'vocab-size V is missing' train -o new.json a.txt
refused 'no output' 2 'output TOKENIZER.json is missing' train --vocab-size 300 a.txt
refused 'no input' 2 'INPUT... is missing' train --vocab-size 300 -o new.json
refused 'a size below the bytes' 2 'vocab-size 256: must be at least 257' train --vocab-size 256 -o new.json a.txt
refused 'special tokens count' 2 'must be at least 258' train --vocab-size 257 --special x1 --special x2 -o new.json a.txt
refused 'another pattern' 2 'must be one of gpt2|llama3|qwen2' train --vocab-size 300 --pattern gpt4 -o new.json a.txt
refused 'an empty special token' 2 'an empty token' train --vocab-size 300 --special '' -o new.json a.txt
refused 'a special token in Latin-1' 2 'not UTF-8' train --vocab-size 300 --special "$(printf '\344')" -o new.json a.txt
refused 'no threads' 2 'from 1 to 1024' train --vocab-size 300 --threads 0 -o new.json a.txt
refused 'the output is an input' 2 'also an input' train --vocab-size 300 -o ./a.txt a.txt
refused 'no such file' 3 'none.txt' train --vocab-size 300 -o new.json none.txt
mkdir nothing
refused 'a folder without texts' 3 'a folder without a text' train --vocab-size 300 -o new.json nothing
: >empty.txt
refused 'an empty text' 3 'empty.txt: .*empty' train --vocab-size 300 -o new.json empty.txt
printf '{"text": ""}\n' >empty.jsonl
refused 'empty documents' 3 'empty.jsonl: no text in it' train --vocab-size 300 -o new.json empty.jsonl
# The first fault is told, whichever thread sees it.
{ cat a.txt; printf 'bad \377 byte\n'; cat a.txt; printf '\300\200'; cat a.txt; } >bad.txt
at=$(($(wc -c <a.txt) + 5))
for n in 1 3; do
    refused "a text that is not UTF-8, $n threads" 3 "bad.txt: not UTF-8 at byte $at (0xff)" train --threads $n --vocab-size 300 -o new.json b.txt bad.txt
done
printf 'cut \303' >cut.txt
refused 'a text that ends inside a character' 3 'last character is cut' train --vocab-size 300 -o new.json cut.txt
{ cat c.jsonl; echo '{"text": 5}'; cat c.jsonl; } >bad.jsonl
refused 'a bad line' 3 'bad.jsonl:30001: field "text" is not a text' train --threads 2 --vocab-size 300 -o new.json bad.jsonl
refused 'an unreadable place' 3 'no/new.json' train --vocab-size 300 -o no/new.json a.txt

# ---- a command of two words
tap_run 'help' train --help
tap_match 'names both words' '^usage: pretrain-data tokenizer train '
tap_run 'help of the first word' "$data" tokenizer --help
tap_match 'lists the commands' '  tokenizer train  *Train a byte-level BPE'
refused 'the first word alone' 2 'no command "tokenizer"' "$data" tokenizer
refused 'an unknown second word' 2 'no command "tokenizer trian"; did you mean tokenizer train?' "$data" tokenizer trian
tap_done
