# pretrain-data convert, merge and stat: every format to every other and back, bad input, the plot
. "${srcdir:-.}/tests/lib.sh"
data=$builddir/pretrain-data
cd "$work" || exit 1
tap_plan 63

# refused NAME CODE PATTERN COMMAND...: the code, one line, and nothing written
refused() {
    refused_name=$1 refused_code=$2 refused_text=$3
    shift 3
    rm -f new*
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

hash_of() { "$data" info "$1" | sed -n 's/^xxh3 *//p'; }

same() {
    if [ "$(hash_of "$2")" = "$(hash_of "$3")" ] &&
        [ "$("$data" info "$2" | grep documents)" = "$("$data" info "$3" | grep documents)" ] &&
        "$data" check "$3" >out 2>&1; then
        tap_ok "$1"
    else
        tap_not_ok "$1" out
    fi
}

# ---- there and back: 300 documents, some empty; ids to 256
for i in $(seq 1 300); do
    printf '{"text":"%0*d%s"}\n' $((i % 40 + 1)) "$i" "$i"
done >lines.jsonl
echo '{"text":""}' >>lines.jsonl
"$data" tokenize --tokenizer bytes -o ours.h5 lines.jsonl >/dev/null
formats='megatron datatrove llm.c raw pretrain'
for format in $formats; do
    tap_run "to $format" "$data" convert --to $format -o "$format.bin" ours.h5
done
for format in $formats; do
    stated='--eod 256'
    [ $format = pretrain ] && stated=
    [ $format = raw ] && stated='--eod 256 --dtype uint16'
    # shellcheck disable=SC2086
    tap_run "$format: check" "$data" check $stated "$format.bin"
    # shellcheck disable=SC2086
    tap_run "$format: info" "$data" info $stated "$format.bin"
    # shellcheck disable=SC2086
    "$data" convert --to pretrain --vocab-size 257 $stated -o "back-$format.h5" "$format.bin" >out 2>&1
    same "from $format: the tokens and documents that went in" ours.h5 "back-$format.h5"
    for other in megatron datatrove llm.c raw; do
        # shellcheck disable=SC2086
        "$data" convert --to $other --vocab-size 257 $stated -o "$format-$other.bin" "$format.bin" >out 2>&1
        if cmp "$other.bin" "$format-$other.bin" >>out 2>&1; then
            tap_ok "$format to $other: the same bytes"
        else
            tap_not_ok "$format to $other: the same bytes" out
        fi
    done
done
if cmp megatron.idx datatrove-megatron.idx >out 2>&1 && cmp datatrove.bin.index llm.c-datatrove.bin.index >out 2>&1; then
    tap_ok 'and the indices'
else
    tap_not_ok 'and the indices' out
fi

# ---- larger ids
printf '\001\000\000\000\000\000\004\000\000\000\000\000' >wide.u32
"$data" import --dtype uint32 --vocab-size 300000 --eod 0 -o wide.h5 wide.u32 >/dev/null
for format in megatron datatrove llm.c raw; do
    "$data" convert --to $format -o "wide-$format.bin" wide.h5 >out 2>&1
    tap_match "ids above 65535 to $format" "3 tokens in .* documents, u*int32"
done

# ---- merge
tap_run 'merge' "$data" merge -o merged.h5 ours.h5 ours.h5 pretrain.bin
tap_match 'merge: three times' ": $(($("$data" info ours.h5 | sed -n 's/^tokens *\([0-9,]*\).*/\1/p' | tr -d ,) * 3 / 1000)),[0-9]* tokens in 903 documents"
refused 'merge of two vocabularies' 3 'vocabulary size 300000, but ours.h5 has 257' "$data" merge -o new.h5 ours.h5 wide.h5
refused 'merge into an input' 2 'also an input' "$data" merge -o ours.h5 ours.h5 wide.h5
refused 'nothing to merge' 2 'FILE... is missing' "$data" merge -o new.h5

# ---- refused
refused 'no vocabulary' 2 'megatron.bin (Megatron) does not say its vocabulary: give --vocab-size' \
    "$data" convert --to pretrain -o new.h5 megatron.bin
refused 'another vocabulary' 2 'the input says 257' "$data" convert --to raw --vocab-size 300 -o new.u16 ours.h5
refused 'a vocabulary that is too small' 3 'has id 256, but model.vocab_size is 256' \
    "$data" convert --to pretrain --vocab-size 256 -o new.h5 megatron.bin
refused 'a name for Megatron' 2 'must end in .bin' "$data" convert --to megatron -o new.h5 ours.h5
refused 'an unknown format' 2 'must be one of pretrain' "$data" convert --to parquet -o new.h5 ours.h5

# ---- stat
tap_run 'stat' "$data" stat ours.h5 --svg plot.svg
tap_match 'stat: documents' '^documents  *301; tokens in one: least 1, '
tap_match 'stat: a bin' '^  from  *16  *[0-9]*  ##*$'
tap_match 'stat: ids' '^tokens .*; 11 ids are there of a vocabulary of 257'
tap_match 'stat: the end token' '^  id  *256  *301 '
cp ours.h5 'a<&b.h5'
tap_run 'stat of an odd name' "$data" stat 'a<&b.h5' --svg plot.svg
tap_match 'its plot is XML' 'a&lt;&amp;b.h5: 7080 tokens, 301 documents</text>' plot.svg
tap_match 'and has both curves' '<polyline .*points="[0-9]' plot.svg
tap_done
