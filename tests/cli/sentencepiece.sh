# A SentencePiece .model from texts to an export: tokenize, peek, train, merge, generate; and without the library
. "${srcdir:-.}/tests/lib.sh"
data=$builddir/pretrain-data
cd "$work" || exit 1
printf '{"text":"a"}\n{"text":"b"}\n' >two.jsonl
if ! grep -q 'define HAVE_SENTENCEPIECE 1' "$builddir/config.h"; then
    tap_plan 2
    printf '\n\005<unk>\000\000' >x.model
    tap_exit 'refused where libsentencepiece is absent' 3 "$data" tokenize --tokenizer x.model -o x.h5 two.jsonl
    tap_match 'with the cure' 'x.model: a SentencePiece model, and this build lacks libsentencepiece: install it'
    tap_done
    exit
fi
command -v spm_train >/dev/null || tap_skip_all 'no spm_train (Debian: sentencepiece)'
tap_plan 21

awk 'BEGIN { for (i = 0; i < 400; i++) print "the quick brown fox " i " jumps over a lazy dog, b or " i % 7 " of them" }' >corpus.txt
spm_train --input=corpus.txt --model_prefix=x --vocab_size=120 --model_type=bpe --byte_fallback=false \
    --hard_vocab_limit=false --minloglevel=2 >spm.log 2>&1 || { cat spm.log; tap_skip_all 'spm_train fails'; }
spm_train --input=corpus.txt --model_prefix=bare --vocab_size=120 --model_type=bpe --bos_id=-1 --eos_id=-1 \
    --hard_vocab_limit=false --minloglevel=2 >spm.log 2>&1

# ids FILE: what a token file holds, in one line
ids() { "$data" convert --to raw -o ids.bin "$1" >/dev/null && od -An -v -tu2 -w2 ids.bin | tr -s '\n ' ' ' | sed 's/^ //; s/ $//' && echo; }
encode() { echo "$1" | spm_encode --model=x.model --output_format=id; }

tap_run 'tokenize' "$data" tokenize --tokenizer x.model -o x.h5 two.jsonl
ids x.h5 >got
echo "1 $(encode a) 2 1 $(encode b) 2" >want # public bug B47
tap_run 'B47: <s>, the text and </s>, once for each document' cmp got want
tap_run 'info' "$data" info x.h5
tap_match 'names the kind of tokenizer' 'tokenizer  *SentencePiece model of [0-9]* bytes'
tap_run 'tokenize another text' "$data" tokenize --tokenizer x.model -o t.h5 corpus.txt
tap_run 'peek' "$data" peek --tokens 12 t.h5
tap_match 'shows text' 'the quick brown'
tap_exit 'B47: no </s> in the model and none named' 2 "$data" tokenize --tokenizer bare.model -o bare.h5 two.jsonl
tap_match 'says how to name one' 'bare.model: no token is known to end a document: name one with --eod TOKEN'
tap_run 'another end' "$data" tokenize --tokenizer x.model --eod '<unk>' -o e.h5 two.jsonl
ids e.h5 >got
echo "1 $(encode a) 0 1 $(encode b) 0" >want
tap_run 'is what stands behind a document' cmp got want
head -c 300 x.model >cut.model
tap_exit 'a model that is cut' 3 "$data" tokenize --tokenizer cut.model -o cut.h5 two.jsonl
tap_match 'is refused by name' 'cut.model: not a SentencePiece model'

cat >deck.nml <<END
&run directory = 'run', threads = 1 /
&train train_steps = 1, sequence_length = 16, global_batch_size = 2 /
&model vocab_size = 0, hidden_size = 32, intermediate_size = 64, num_hidden_layers = 1, num_attention_heads = 2 /
&data train = 't.h5' /
&optim learning_rate = 1e-3, lr_schedule = 'constant' /
END
tap_run 'train' "$builddir/pretrain" deck.nml
tap_run 'export' "$builddir/pretrain-merge" -o hf run/step_00000001
tap_run 'the export has the model' cmp hf/tokenizer.model x.model
tap_match 'and says what reads it' '"tokenizer_class": "LlamaTokenizer"' hf/tokenizer_config.json
tap_match 'and its tokens' '"eos_token": "</s>"' hf/tokenizer_config.json
tap_run 'a second export replaces it' "$builddir/pretrain-merge" -o hf run/step_00000001
echo 'the quick' >prompt.txt
for model in hf run/step_00000001; do
    "$builddir/pretrain-infer" generate --max-new-tokens 3 -o out.jsonl $model prompt.txt >out 2>&1
    grep -c "\"prompt_tokens\": *$(($(encode 'the quick' | wc -w) + 1)),.*\"text\"" out.jsonl >>counts
    mv out.jsonl "out.$(basename $model)"
done
printf '1\n1\n' >want
tap_run 'generate takes and gives text, from the export and the checkpoint' cmp counts want
tap_run 'the same of both' cmp out.hf out.step_00000001
tap_done
