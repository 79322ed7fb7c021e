# pretrain-data: every command, bad input, odd names, locales, a full disk
. "${srcdir:-.}/tests/lib.sh"
data=$builddir/pretrain-data
cd "$work" || exit 1
tap_plan 135

# holds NAME COMMAND...: no output file of the test is checked, only the command's answer
holds() {
    holds_name=$1
    shift
    if "$@" >/dev/null 2>&1; then tap_ok "$holds_name"; else tap_not_ok "$holds_name"; fi
}

# refused NAME CODE PATTERN COMMAND...: the code, the message, and nothing written
refused() {
    refused_name=$1 refused_code=$2 refused_text=$3
    shift 3
    rm -f new.h5 new2.h5
    "$@" >out 2>&1 </dev/null
    refused_rc=$?
    if [ $refused_rc -eq "$refused_code" ] && grep -q -e "$refused_text" out &&
        [ "$(wc -l <out)" -eq 1 ] && ! ls new* >/dev/null 2>&1; then
        tap_ok "$refused_name"
    else
        echo "# exit $refused_rc, expected $refused_code, one line with '$refused_text', no new*: $(ls new* 2>/dev/null)"
        tap_not_ok "$refused_name" out
    fi
}

tokenize() { "$data" tokenize --tokenizer bytes "$@"; }

# ---- the command line
tap_run 'help' "$data" --help
tap_match 'help names the commands' 'tokenize  *Make'
for command in tokenize import info peek check; do
    tap_run "help of $command" "$data" $command --help
    tap_match "usage of $command" "^usage: pretrain-data $command "
done
tap_run 'short help wins over all else' "$data" import -h --nonsense
tap_run 'version' "$data" --version
printf 'abc' >a.txt
refused 'no command' 2 'command is missing' "$data"
refused 'unknown command' 2 'did you mean tokenize?' "$data" tokenise a.txt
refused 'unknown option' 2 'did you mean --tokenizer?' "$data" tokenize --tokeniser bytes -o new.h5 a.txt
refused 'unknown letter' 2 'no option "-x"' "$data" tokenize -x a.txt
refused 'no output' 2 'output OUT.h5 is missing' tokenize a.txt
refused 'no input' 2 'INPUT... is missing' tokenize -o new.h5
refused 'no value' 2 'needs a value' tokenize a.txt -o
refused 'option twice' 2 'given twice' tokenize -o new.h5 -o new2.h5 a.txt
refused 'too many operands' 2 '"b" is too much' "$data" info a b
refused 'a value for help of the dtype' 2 'must be one of uint16' "$data" import --dtype float32 --vocab-size 9 --eod 1 -o new.h5 a.txt
refused 'a size that is none' 2 'whole number' "$data" import --dtype uint16 --vocab-size 1e3 --eod 1 -o new.h5 a.txt
refused 'eod outside' 2 'eod 9: must be below' "$data" import --dtype uint16 --vocab-size 9 --eod 9 -o new.h5 a.txt

# ---- tokenize and peek
printf 'Hello w\303\266rld\n\000bin\\\t' >text.txt
printf '{"text":"ab\\u0000cd"}\r\n \n{"text":"\\ud83d\\ude00 x","id":7}\n{"text":""}\n{"text":"\\u0000"}' >lines.jsonl
tap_run 'tokenize a text and lines' tokenize -o t.h5 text.txt lines.jsonl
tap_match 'it says what it wrote' 't.h5: 36 tokens in 5 documents, uint16, vocabulary 257'
cat >want <<'END'
document 0: 20 tokens from 0
Hello wörld\n\x00bin\\\t<|endoftext|>
document 1: 6 tokens from 20
ab\x00cd<|endoftext|>
document 2: 7 tokens from 26
😀 x<|endoftext|>
document 3: 1 tokens from 33
<|endoftext|>
document 4: 2 tokens from 34
\x00<|endoftext|>
END
"$data" peek t.h5 --documents 9 >got
holds 'peek shows every byte' cmp want got
"$data" peek --first=2 --documents=1 --tokens=5 t.h5 >got
printf 'document 2: 7 tokens from 26, cut\n\360\237\230\200 <|cut|>\n' | sed 's/<|cut|>//' >want
holds 'peek from a document on' cmp want got
refused 'peek after the end' 2 'documents 0 .. 4' "$data" peek --first 5 t.h5
tap_run 'info' "$data" info t.h5
tap_match 'info: tokenizer' '^tokenizer  *bytes'
tap_match 'info: hash' '^xxh3  *[0-9a-f]\{32\}$'
tap_run 'check' "$data" check t.h5
printf '{"body":"x<|endoftext|>"}\n' >field.jsonl
tap_run 'another field; --name=value' "$data" tokenize --tokenizer=bytes --field=body -o f.h5 field.jsonl
"$data" info f.h5 >out
tap_match 'the name of the end token in a text is only text' '^tokens  *15 '
printf '\357\273\277{"text":"x"}' >bom.jsonl
tap_run 'a byte order mark before lines' tokenize -o f.h5 bom.jsonl
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "line %d of a text that is longer than a buffer\n", i }' >long.txt
awk 'BEGIN { printf "{\"text\":\""; for (i = 0; i < 60000; i++) printf "line %d of a text that is longer than a buffer ", i; print "\"}"; print "{\"text\":\"y\"}" }' >long.jsonl
tap_run 'longer than every buffer' tokenize -o long.h5 long.txt long.jsonl
tap_run 'longer than every buffer: check' "$data" check long.h5
"$data" peek long.h5 --documents 1 --tokens 9999999 | sed -n 2p | sed 's/<|endoftext|>$//; s/\\n/\
/g' | sed '$d' >got
holds 'a long text comes back' cmp long.txt got

# ---- bad texts
printf 'good\nbad \377 byte' >bad.txt
refused 'text is not UTF-8' 3 'bad.txt: not UTF-8 at byte 10 (0xff)' tokenize -o new.h5 bad.txt
printf 'cut \303' >bad.txt
refused 'text ends inside a character' 3 'last character is cut' tokenize -o new.h5 bad.txt
bad_line() { # NAME PATTERN LINE: the third line of a file
    printf '{"text":"a"}\n{"text":"b"}\n%b\n{"text":"c"}\n' "$3" >bad.jsonl
    refused "$1" 3 "bad.jsonl:3: $2" tokenize -o new.h5 text.txt bad.jsonl
}
bad_line 'line is not UTF-8' 'not UTF-8 at byte 10 of the line (0xff)' '{"text":"\0377"}'
bad_line 'surrogates in UTF-8' 'not UTF-8' '{"text":"\0355\0240\0200"}'
bad_line 'overlong UTF-8' 'not UTF-8' '{"text":"\0300\0200"}'
bad_line 'line is not JSON' 'not JSON at byte' '{"text":"a"'
bad_line 'quotes missing' 'not JSON' '{text: a}'
bad_line 'two objects' 'not JSON' '{"text":"a"} {"text":"b"}'
bad_line 'half a surrogate pair' 'not JSON' '{"text":"\\ud800"}'
bad_line 'line is a list' 'not an object' '["text","a"]'
bad_line 'no such field' 'no field "text"; choose another with --field' '{"body":"a"}'
bad_line 'field is a number' 'field "text" is not a text' '{"text":5}'
bad_line 'field is null' 'field "text" is not a text' '{"text":null}'
bad_line 'field twice' 'not JSON' '{"text":"a","text":"b"}'
printf '[\n {"text":"a"}\n]\n' >bad.json
refused 'a JSON file that is not lines' 3 'bad.json:1: not JSON' tokenize -o new.h5 bad.json
: >empty.txt
refused 'empty text' 3 'empty.txt: .*empty' tokenize -o new.h5 empty.txt
printf '\n\n' >blank.jsonl
refused 'no documents' 3 'no documents' tokenize -o new.h5 blank.jsonl
printf 'BZh91AY&SY\001\002' >packed.txt
refused 'packed by bzip2' 3 'bunzip2' tokenize -o new.h5 packed.txt
refused 'a token file as text' 3 'an HDF5 file' tokenize -o new.h5 t.h5
mkdir empty
refused 'a folder without texts' 3 'empty: a folder without a text' tokenize -o new.h5 empty
refused 'absent' 3 'absent.txt' tokenize -o new.h5 text.txt absent.txt
refused 'output in an absent folder' 3 'no/new.h5' tokenize -o no/new.h5 text.txt
refused 'output is a directory' 3 'a directory' tokenize -o . text.txt
refused 'output is an input' 2 'also an input' tokenize -o ./text.txt text.txt
refused 'one name for both parts' 2 'both -o and' tokenize -o new.h5 --validation-output ./new.h5 --validation-fraction 0.5 lines.jsonl
printf '{"version":"1.0"}' >tokenizer.json
refused 'a tokenizer without a model' 3 'tokenizer.json: no key `model`' "$data" tokenize --tokenizer tokenizer.json -o new.h5 text.txt
refused 'a tokenizer that is none' 3 'not a tokenizer.json' "$data" tokenize --tokenizer text.txt -o new.h5 text.txt
refused 'no such tokenizer' 3 'byte' "$data" tokenize --tokenizer byte -o new.h5 text.txt
refused 'another end of bytes' 2 'end token of `bytes`' tokenize --eod '<x>' -o new.h5 text.txt
printf 'one two one<|endoftext|>two\n' >named.txt
printf '{"text":"one two"}\n{"text":"three\\u0000 one"}\n' >docs.jsonl
tap_run 'a vocabulary of our own' "$data" tokenizer train --vocab-size 264 -o mine.json named.txt
tap_run 'tokenize with it' "$data" tokenize --tokenizer mine.json -o mine.h5 docs.jsonl named.txt
tap_match 'the special token named in a text is counted' 'named in the texts: 1;'
tap_run 'peek at it' "$data" peek mine.h5
tap_match 'peek: a document of its own vocabulary' '^three\\x00 one<|endoftext|>$'
tap_run 'specials as text' "$data" tokenize --tokenizer mine.json --specials-as-text -o text.h5 docs.jsonl named.txt
holds 'takes more tokens' sh -c "[ $("$data" info text.h5 | awk '/^tokens/ { print $2 }') -gt $("$data" info mine.h5 | awk '/^tokens/ { print $2 }') ]"
tap_run 'a vocabulary without an end' "$data" tokenizer train --special '<x>' --vocab-size 258 -o noend.json named.txt
refused 'no token ends a document' 2 'name one with --eod' "$data" tokenize --tokenizer noend.json -o new.h5 named.txt
refused 'an end that is none' 2 "'<y>': noend.json has no such token" "$data" tokenize --tokenizer noend.json --eod '<y>' -o new.h5 named.txt
tap_run 'a named end' "$data" tokenize --tokenizer noend.json --eod '<x>' -o noend.h5 named.txt
if h5dump -d /tokenizer_json -b LE -o own.json t.h5 >/dev/null 2>&1; then
    tap_run 'our own tokenizer.json' "$data" tokenize --tokenizer own.json -o own.h5 text.txt lines.jsonl
    holds 'gives the same file' cmp t.h5 own.h5
else
    tap_skip 'our own tokenizer.json' 'no h5dump'
    tap_skip 'gives the same file' 'no h5dump'
fi

# ---- validation
awk 'BEGIN { for (i = 0; i < 100; i++) printf "{\"text\":\"%d\"}\n", i }' >hundred.jsonl
split() { tokenize -o new.h5 --validation-output new2.h5 --validation-fraction "$@"; }
# documents of a file of the split, as a list
texts() { "$data" peek "$1" --documents 1000 | sed -n '/<|endoftext|>/s///p' | tr '\n' ' '; }
tap_run 'a fifth is held out' split .2 hundred.jsonl
holds 'documents 4, 9, ...' test "$(texts new2.h5)" = "$(seq -s ' ' 4 5 99) "
holds 'the others stay' test "$(texts new.h5)" = "$(seq 0 99 | awk '$1 % 5 != 4 { printf "%s ", $1 }')"
refused 'empty validation' 2 'of 1 document none is left for validation' split 0.02 text.txt
refused 'fraction nan' 2 'number from 0 to 1' split nan hundred.jsonl
refused 'fraction below 0' 2 'number from 0 to 1' split -0.1 hundred.jsonl
refused 'fraction 1.5' 2 'number from 0 to 1' split 1.5 hundred.jsonl
refused 'fraction in words' 2 'number from 0 to 1' split half hundred.jsonl
refused 'fraction without output' 2 'go together' tokenize -o new.h5 --validation-fraction 0.5 hundred.jsonl
refused 'output without fraction' 2 'go together' tokenize -o new.h5 --validation-output new2.h5 hundred.jsonl

# ---- import
import() { "$data" import --vocab-size 300 --eod 0 -o "$@"; }
printf '\005\000\000\000\053\001\007\000' >raw.u16
printf '\005\000\000\000\000\000\000\000\053\001\000\000\007\000\000\000' >raw.u32
printf '\005\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\053\001\000\000\000\000\000\000\007\000\000\000\000\000\000\000' >raw.i64
for type in uint16:raw.u16 uint32:raw.u32 int32:raw.u32 int64:raw.i64; do
    tap_run "import ${type%%:*}" import "i-${type%%:*}.h5" --dtype "${type%%:*}" "${type#*:}"
done
printf 'document 0: 2 tokens from 0\n5 0\ndocument 1: 2 tokens from 2\n299 7\n' >want
"$data" peek i-uint16.h5 >got
holds 'a document starts after each eod' cmp want got
holds 'one stream, one file: uint32' cmp i-uint16.h5 i-uint32.h5
holds 'one stream, one file: int32' cmp i-uint16.h5 i-int32.h5
holds 'one stream, one file: int64' cmp i-uint16.h5 i-int64.h5
i64() { for i64; do printf "$(printf '\\%03o\\%03o\\0\\0\\0\\0\\0\\0' $((i64 % 256)) $((i64 / 256)))"; done; }
i64 0 1 3 >starts
tap_run 'starts from a file' import i.h5 --dtype uint16 --documents starts raw.u16
tap_match 'three documents' 'in 3 documents'
refused 'wrong dtype' 3 'token 459051 at position 1 is not in 0 .. 299; is --dtype uint32 right' import new.h5 --dtype uint32 raw.u16
printf '\377\377\377\377\005\000\000\000' >minus.i32
refused 'negative token' 3 'token -1 at position 0 is not in 0 .. 299' import new.h5 --dtype int32 minus.i32
printf '\054\001' >large.u16
refused 'token outside the vocabulary' 3 'token 300 at position 0' import new.h5 --dtype uint16 large.u16
head -c 7 raw.u16 >odd.u16
refused 'half a token' 3 '7 bytes are not a whole number of uint16' import new.h5 --dtype uint16 odd.u16
i64 1 3 >starts
refused 'starts not at 0' 3 'must start at 0' import new.h5 --dtype uint16 --documents starts raw.u16
i64 0 2 2 >starts
refused 'a start twice' 3 'document 2 starts at 2' import new.h5 --dtype uint16 --documents starts raw.u16
i64 0 4 >starts
refused 'a start after the end' 3 'starts at 4, but raw.u16 has 4' import new.h5 --dtype uint16 --documents starts raw.u16
refused 'starts are no int64' 3 'not a list of int64' import new.h5 --dtype uint16 --documents odd.u16 raw.u16
printf 'MMIDIDX\000\000xxxxxxx' >mega.idx
refused 'a Megatron index' 3 'name its .bin' import new.h5 --dtype uint16 mega.idx
refused 'an HDF5 file' 3 'an HDF5 file' import new.h5 --dtype uint16 t.h5
refused 'an empty stream' 3 'empty' import new.h5 --dtype uint16 empty.txt
refused 'output is the input' 2 'also an input' import raw.u16 --dtype uint16 raw.u16
tap_run 'no eod' "$data" import --dtype uint16 --vocab-size 300 --eod -1 -o i.h5 raw.u16
tap_match 'no eod: a warning says what it means' 'warning: .* one document'

# ---- files that are no token files
for command in info peek check; do
    refused "$command a text" 3 'it is text; make a token file of it with' "$data" $command a.txt
done
head -c 30000 t.h5 >cut.h5
refused 'a cut file' 3 'cut.h5.*truncated' "$data" info cut.h5
cp t.h5 damaged.h5
printf '\001' | dd of=damaged.h5 bs=1 seek=32775 conv=notrunc 2>/dev/null
refused 'a damaged file' 3 'damaged' "$data" check damaged.h5

# ---- locales, names, a full disk
for locale in C POSIX C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 nonsense; do
    LC_ALL=$locale "$data" tokenize --tokenizer bytes --validation-fraction 0.25 --validation-output l2.h5 -o l.h5 text.txt lines.jsonl >/dev/null 2>&1
    tokenize --validation-fraction 0.25 --validation-output w2.h5 -o w.h5 text.txt lines.jsonl >/dev/null
    holds "LC_ALL=$locale" sh -c 'cmp l.h5 w.h5 && cmp l2.h5 w2.h5'
done
for name in 'a b' "it's" 'x=1,y' 'uni-ä' '~' '-dash'; do
    mkdir -p "./$name" && cp lines.jsonl "./$name/in put.jsonl"
    holds "in a folder named $name" sh -c '"$1" tokenize --tokenizer bytes -o "./$2/out put.h5" -- "./$2/in put.jsonl" && "$1" check "./$2/out put.h5" && test "$(ls "./$2" | wc -l)" -eq 2' - "$data" "$name"
done
holds 'one sample of a full disk leaves the old file' sh -c '
    cp t.h5 full.h5
    (ulimit -f 40; "$1" tokenize --tokenizer bytes -o full.h5 long.txt) >out 2>&1
    test $? -eq 3 && grep -q "full.h5.*ulimit -f" out && cmp t.h5 full.h5 && test "$(ls full* | wc -l)" -eq 1' - "$data"
tap_done
