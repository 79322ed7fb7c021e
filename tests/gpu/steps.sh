# Training for tests/gpu/run.sh, after lib.sh: loss curves against the CPU, and the speed of steps.

# 200 steps on bytes of the documents: the device in two types against the CPU in float32.
curves() {
    train_seconds=3600
    deck=$top/tests/gpu/loss.nml
    "$build/pretrain-data" tokenize --tokenizer bytes -o "$work/documents.h5" "$top"/README.md \
        "$top"/doc/*.md "$top"/LICENSE >"$work/tokenize.log" 2>&1 || {
        row "loss of 200 steps" "$(last_line "$work/tokenize.log")" - failed
        return
    }
    set -- --set "data.train = '$work/documents.h5'"
    if ! train cpu 1 "$deck" "$@" --set "run.device = 'cpu'" --set "run.threads = $(nproc)"; then
        row "loss of 200 steps, the CPU's" "$(last_line "$work/cpu.log")" - failed
        return
    fi
    for dtype in float32 bfloat16; do
        curve "$dtype" 1 "one GPU" "$@"
    done
    [ "$gpus" -lt 2 ] || curve bfloat16 2 "two GPUs, dp 2" "$@" --set "parallel.dp = 2"
}

# curve DTYPE RANKS WHERE OPTION...
curve() {
    curve_item="loss of 200 steps, $1 on $3" curve_name=loss-$1-$2 curve_dtype=$1 curve_ranks=$2
    shift 3
    if train "$curve_name" "$curve_ranks" "$deck" "$@" --set "run.device = 'cuda'" \
        --set "train.dtype = '$curve_dtype'"; then
        off=$(apart "$curve_name" cpu)
        judge "$curve_item" "$(numbers "$curve_name" loss | awk 'NR == 1 { a = $1 } { b = $1 }
            END { printf "%.3f to %.3f", a, b }'); at most $off from the CPU's in float32, over 20 steps" "1e-2" \
            awk -v x="$off" 'BEGIN { exit !(x ~ /^[0-9]/ && x + 0 <= 1e-2) }'
    else
        row "$curve_item" "$(last_line "$work/$curve_name.log")" - failed
    fi
}

# ids VOCABULARY: a token file of random ids
ids() {
    [ -f "$work/ids-$1.h5" ] && return
    "$build/tests/gpu/bench" --ids "$work/ids.raw" 4000000 "$1" &&
        "$build/pretrain-data" import --dtype uint32 --vocab-size "$1" --eod $(($1 - 1)) -o "$work/ids-$1.h5" \
            "$work/ids.raw" >"$work/ids.log" 2>&1
    ids_code=$?
    rm -f "$work/ids.raw"
    return $ids_code
}

# speed NAME RANKS DECK VOCABULARY MICRO_BATCH SEQUENCES OPTION...: a run's figures in $fraction and $tokens
speed() {
    speed_name=$1 speed_ranks=$2 speed_deck=$3 speed_vocab=$4 speed_micro=$5 speed_global=$6
    shift 6
    fraction= tokens=
    ids "$speed_vocab" || { cp "$work/ids.log" "$work/$speed_name.log"; return 1; }
    train "$speed_name" "$speed_ranks" "$top/input/$speed_deck" \
        --set "run.device = 'cuda'" --set "run.resume = 'never'" \
        --set "train.dtype = 'bfloat16'" --set "train.train_steps = 12" \
        --set "train.sequence_length = 4096" --set "train.micro_batch_size = $speed_micro" \
        --set "train.global_batch_size = $speed_global" \
        --set "parallel.dp = $speed_ranks" --set "parallel.tp = 1" --set "parallel.pp = 1" \
        --set "parallel.schedule = '1f1b'" --set "parallel.virtual_stages = 1" \
        --set "data.train = '$work/ids-$speed_vocab.h5'" --set "data.validation = ''" \
        --set "optim.warmup_steps = 2" --set "optim.lr_schedule = 'cosine'" --set "optim.decay_steps = 0" \
        --set "checkpoint.interval = 0" --set "checkpoint.save_final = .false." \
        --set "eval.interval = 0" "$@" || return 1
    fraction=$(numbers "$speed_name" peak_fraction | median_after 3)
    tokens=$(numbers "$speed_name" tokens_per_second | median_after 3)
    [ -n "$fraction" ] && [ -n "$tokens" ]
}

# step ITEM NAME DECK VOCABULARY MICRO_BATCH SEQUENCES OPTION...: one GPU; with two or more also two
step() {
    step_item=$1 step_name=$2 step_deck=$3 step_vocab=$4 step_micro=$5 step_global=$6
    shift 6
    if ! speed "$step_name" 1 "$step_deck" "$step_vocab" "$step_micro" "$step_global" "$@"; then
        row "step, $step_item" "$(last_line "$work/$step_name.log")" - failed
        return
    fi
    judge "step, $step_item" "$(awk -v f="$fraction" -v t="$tokens" 'BEGIN {
        printf "%.1f %% of nominal, %.0f tokens/s%s", 100 * f, t, (f >= 0.6 ? "; 60 % too" : "") }')" \
        "50 % of nominal (next: 60 %)" at_least "$fraction" 0.5
    [ "$gpus" -ge 2 ] || return 0
    one=$tokens
    if speed "$step_name-2" 2 "$step_deck" "$step_vocab" "$step_micro" $((2 * step_global)) "$@"; then
        row "step, $step_item, dp 2" "$(awk -v f="$fraction" -v t="$tokens" -v o="$one" 'BEGIN {
            printf "%.2f times one GPU, %.1f %% of nominal, %.0f tokens/s", t / o, 100 * f, t }')" - measured
    else
        row "step, $step_item, dp 2" "$(last_line "$work/$step_name-2.log")" - failed
    fi
}

# The 1B run once more, its activations in host memory.
offloaded() {
    without=$(numbers 1b tokens_per_second 2>/dev/null | median_after 3)
    if [ -n "$without" ] && speed 1b-offload 1 llama-1b.nml 128256 4 16 --set "train.offload = 'activations'"; then
        row "step, 1B, activations offloaded" "$(awk -v t="$tokens" -v o="$without" 'BEGIN {
            printf "%.2f times the speed without, %.0f tokens/s", t / o, t }')" - measured
    else
        row "step, 1B, activations offloaded" "$(last_line "$work/1b-offload.log")" - failed
    fi
}

steps() {
    train_seconds=1200
    step "124M, 4096 tokens" 124m llama-124m.nml 50257 4 16
    step "1B, 4096 tokens" 1b llama-1b.nml 128256 4 16
    offloaded
    step "8B's widths, 4 layers, 4096 tokens" 8b llama-8b.nml 128256 2 8 \
        --set "model.num_hidden_layers = 4"
    [ "$gpus" -ge 2 ] || row "steps on two GPUs (NCCL)" "one GPU" - skipped
}
