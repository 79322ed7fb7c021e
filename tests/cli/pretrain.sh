# pretrain without a launcher: help, defaults, --check and --plan, --set, exit codes, time
. "${srcdir:-.}/tests/lib.sh"
pretrain=$builddir/pretrain
input=$srcdir/input
cd "$work" || exit 1
decks=$(cd "$input" && ls *.nml)
set -- $decks
tap_plan $((62 + 6 * $#))
quick=quick.nml
cat >$quick <<'END'
&run   directory = 'runs/quick' /
&train train_steps = 300, sequence_length = 256, micro_batch_size = 4, global_batch_size = 32 /
&parallel dp = 0, tp = 2, pp = 2 /
&model vocab_size = 0, hidden_size = 256, intermediate_size = 688, num_hidden_layers = 6
       num_attention_heads = 8, num_key_value_heads = 4 /
&data  train = 'data/train.h5', validation = 'data/validation.h5' /
&optim learning_rate = 1e-3, warmup_steps = 20 /
&eval
  interval = 50
/
END

# refused NAME CODE PATTERN ARGUMENT...: one message, the code, nothing written
refused() {
    refused_name=$1 refused_code=$2 refused_text=$3
    shift 3
    rm -rf runs
    "$pretrain" "$@" >out 2>err </dev/null
    refused_rc=$?
    if [ $refused_rc -eq "$refused_code" ] && grep -q -e "$refused_text" err &&
        [ "$(grep -c '^pretrain: ' err)" -eq 1 ] && ! grep -q 'pretrain: pretrain' err && [ ! -e runs ]; then
        tap_ok "$refused_name"
    else
        echo "# exit $refused_rc, expected $refused_code and one message with '$refused_text': $*"
        tap_not_ok "$refused_name" out err
    fi
}

# timed NAME ARGUMENT...: holds if it exits 0; says how long it took (less than a second, alone on a machine)
timed() {
    timed_name=$1
    shift
    timed_start=$(date +%s%N)
    "$pretrain" "$@" >"$work/out" 2>"$work/err" </dev/null
    timed_rc=$?
    timed_ms=$((($(date +%s%N) - timed_start) / 1000000))
    echo "# $timed_name: $timed_ms ms"
    if [ $timed_rc -eq 0 ]; then
        tap_ok "$timed_name"
    else
        echo "# exit $timed_rc"
        tap_not_ok "$timed_name" "$work/out" "$work/err"
    fi
}

# ---- what it says of itself
timed '--help' --help
tap_match '--help names the options' '^ *--set GROUP.KEY=VALUE'
tap_run '-h' "$pretrain" -h
timed '--help KEY' --help learning_rate
tap_match '--help KEY says what a resume does' 'on resume  announced'
tap_run '--help=KEY' "$pretrain" --help=tp
tap_match '--help=KEY gives the range' 'range *1 to 1024'
timed '--help keys' --help keys
tap_match '--help keys has all groups' '^&checkpoint'
refused '--help of no key' 2 'no key `lerning_rate`; did you mean `learning_rate`' --help lerning_rate
timed '--version' --version
tap_match '--version names the libraries' '^HDF5 1\.'
timed '--print-defaults' --print-defaults
mv out defaults.nml
tap_run 'its deck is read again' "$pretrain" --check defaults.nml
if [ -f "$srcdir/doc/INPUT.md" ]; then
    "$pretrain" --print-markdown >INPUT.md
    tap_run 'doc/INPUT.md is what --print-markdown writes' diff "$srcdir/doc/INPUT.md" INPUT.md
else
    tap_not_ok 'doc/INPUT.md is there: pretrain --print-markdown > doc/INPUT.md'
fi

# ---- the command line
refused 'an unknown option' 2 'no option "--chek"; did you mean --check?' --chek "$quick"
refused 'no deck' 2 'which deck?'
refused '--check without a deck' 2 'which deck?' --check
refused 'two decks' 2 '"b.nml" is too much' --check a.nml b.nml
refused 'a deck that is not there' 2 '^pretrain: nope.nml: .*No such file' --check nope.nml
refused 'a folder as a deck' 2 'not a regular file' --check .
refused '--plan without --ranks' 2 'needs --ranks N' --plan "$quick"
refused '--ranks without --check' 2 'a run takes mpirun' --ranks 8 "$quick"
refused '--ranks 0' 2 'whole number from 1' --check --ranks 0 "$quick"
refused '--ranks in words' 2 'whole number from 1' --check --ranks eight "$quick"
refused '--verify' 2 'not in this build' --verify "$quick"
refused '--why' 2 'not in this build' --why runs/quick

# ---- --set
check() { "$pretrain" --check "$quick" "$@"; }
tap_run '--set GROUP.KEY=VALUE' check --set train.train_steps=70
tap_match 'it counts' '^ok: 4 ranks, [0-9]* MiB each, 70 steps of 8,192 tokens; writes runs/quick$'
tap_run '--set=GROUP.KEY=VALUE, the last one counts' check --set=train.train_steps=70 --set=train.train_steps=80
tap_match 'the last counts' ', 80 steps of'
tap_run '--set of a text with blanks' check --set "run.directory='a b'"
tap_match 'a text with blanks' 'writes a b$'
tap_run '--set of a list' check --set "data.train='x.h5', 'y.h5'"
tap_match 'both files of a list are looked for' "'y.h5' does not exist yet"
refused '--set without quotes' 2 "needs text in quotes: 'ab'" --check "$quick" --set run.directory=ab
refused '--set without a value' 2 'expected GROUP.KEY=VALUE' --check "$quick" --set run.seed
refused '--set without a group' 2 'expected GROUP.KEY=VALUE' --check "$quick" --set seed=3
refused '--set of a misspelt key' 2 'did you mean `learning_rate`' --check "$quick" --set optim.lerning_rate=3
refused '--set of two bad values, said at once' 2 'parallel.tp=3.*must divide num_attention_heads' \
    --check "$quick" --set parallel.tp=3 --set optim.learning_rate=fast
tap_match 'and the other' 'learning_rate=fast.*needs a real number' err
refused '--set breaks a rule: place and caret' 2 'quick.nml:[0-9]*:[0-9]*: error: .*needs `validation`' \
    --check "$quick" --set "data.validation=''"
tap_match 'the line and a caret' '^ *^$' err

# ---- exit codes of --check
refused 'ranks that do not fit' 2 'use -np 4 (dp 1) or -np 8 (dp 2)' --check "$quick" --ranks 7
echo 'some text' >text.h5
refused 'data that is none' 3 'text.h5: not a token file: it is text' --check "$quick" --set "data.train='text.h5'"
refused 'validation that is none' 3 'text.h5: not a token file' --check "$quick" --set "data.validation='text.h5'"
refused 'init_from that is not there' 3 "nope/config.json.*No such file" --check "$quick" --set "model.init_from='nope'"
mkdir empty
refused 'init_from without a config' 3 "empty/config.json" --check "$quick" --set "model.init_from='empty'"
refused 'too little memory' 6 '8 ranks on a node need .*memory_limit is 0.001 GiB' \
    --check "$quick" --ranks 8 --set run.memory_limit=1e-3
refused 'too little memory, --plan' 6 'memory_limit' --plan "$quick" --ranks 8 --set run.memory_limit=1e-3
refused 'memory of one node' 6 '8 ranks on a node' --check "$quick" --ranks 8 --set run.memory_limit=0.2
tap_run 'the same on two nodes each' check --ranks 8 --set run.memory_limit=0.2 --ranks-per-node 2
refused 'more ranks per node than ranks' 6 '4 ranks on a node' \
    --check "$quick" --ranks 4 --ranks-per-node 8 --set run.memory_limit=0.2
tap_run '--check of absent data' check --ranks 8
tap_match 'absent data is warned about' "^warning: data file 'data/train.h5' does not exist yet: make it with pretrain-data"
tap_match 'the vocabulary is assumed and said' "byte tokenizer's 257 is assumed"
tap_match 'the last line says what would happen' \
    '^ok: 8 ranks, [0-9]* MiB each, 300 steps of 8,192 tokens; writes runs/quick$'
if [ "$(tail -n 1 "$work/out" | cut -c1-3)" = ok: ] && [ "$(wc -l <"$work/out")" -lt 24 ]; then
    tap_ok 'it is the last of less than a screen'
else
    tap_not_ok 'it is the last of less than a screen' "$work/out"
fi
tap_run '--plan shows the stages' "$pretrain" --plan "$quick" --ranks 8
tap_match '--plan: a row a stage' '^ *1  3-5 head '
tap_match '--plan: the schedule' '^schedule 1f1b: 4 micro-batches, bubble 20'

# ---- every deck that we ship; the rank count is that of its comment
for name in $decks; do
    deck=$input/$name
    n=$(sed -n 's/.*mpirun -np \([0-9]*\) pretrain .*/\1/p' "$deck" | head -n 1)
    timed "$name: --check --ranks $n" --check "$deck" --ranks "$n"
    tap_match "$name: ok" "^ok: $n ranks, "
    tap_absent "$name: no error" '^pretrain:' err
    timed "$name: --plan --ranks $n" --plan "$deck" --ranks "$n"
    tap_match "$name: messages" '^messages of a rank in a step'
    if grep -q "pretrain input/$name" "$deck"; then
        tap_ok "$name: says how it is run"
    else
        tap_not_ok "$name: says how it is run" "$deck"
    fi
done
if [ -z "$(ls -d runs 2>/dev/null)" ]; then tap_ok 'nothing was written'; else tap_not_ok 'nothing was written'; fi
tap_done
