# pretrain-ckpt and pretrain-merge: what they print, what they refuse.
. "${srcdir:-.}/tests/lib.sh"

tap_plan 29
tap_run "checkpoints" ./tests/interop/checkpoint_files "$work"
one=$work/one/step_00000003 many=$work/many/step_00000003
tap_run "digest" ./pretrain-ckpt digest "$one"
mv "$work/out" "$work/digest"
tap_run "digest of another layout" ./pretrain-ckpt digest "$many"
mv "$work/out" "$work/other"
tap_run "is the same" cmp "$work/other" "$work/digest"
mkdir -p "$work/one/step_00000007"
tap_run "list" ./pretrain-ckpt list "$work/one"
tap_match "shows the good one" ' 3 .*96 .*3,072 .*1 = pp 1 x dp 1 x cp 1 x tp 1, zero 1'
tap_match "and the bad one" ' 7  bad: .*MANIFEST.json'
tap_run "inspect" ./pretrain-ckpt inspect "$many/"
tap_match "shows tensors" '13 x 12  float32 .* model.embed_tokens.weight'
tap_match "and counters" '^samples *96$'
mkdir "$work/none"
tap_run "list of a folder without checkpoints" ./pretrain-ckpt list "$work/none"
tap_match "says so" 'no checkpoints'
tap_exit "list of no folder" 3 ./pretrain-ckpt list "$work/absent"
tap_exit "digest of no checkpoint" 3 ./pretrain-ckpt digest "$work/one"
tap_exit "verify" 2 ./pretrain-ckpt verify "$one"
tap_match "is refused" 'not in this build'
tap_exit "diff" 2 ./pretrain-ckpt diff "$one" "$many"
tap_exit "selftest" 2 ./pretrain-ckpt selftest "$work"
tap_exit "merge without an output" 2 ./pretrain-merge "$one"
tap_exit "merge of no checkpoint" 3 ./pretrain-merge "$work/none" -o "$work/m"
tap_exit "merge into an unknown type" 2 ./pretrain-merge "$one" -o "$work/m" --dtype int8
tap_exit "moments into safetensors" 2 ./pretrain-merge "$one" -o "$work/m" --with-optimizer
tap_exit "shards of HDF5" 2 ./pretrain-merge "$one" -o "$work/m" --format hdf5 --max-shard-size 1GB
tap_exit "a folder of somebody else" 2 ./pretrain-merge "$one" -o "$work/one"
tap_run "nothing was written" test ! -e "$work/m"
tap_run "merge" ./pretrain-merge "$one" --output="$work/m"
tap_run "merge of another layout" ./pretrain-merge "$many" -o "$work/n"
tap_run "gives the same bytes" cmp "$work/m/model.safetensors" "$work/n/model.safetensors"
printf x | dd of="$one/rank_00000.h5" bs=1 seek=40000 conv=notrunc 2>/dev/null
tap_exit "merge of a damaged checkpoint" 3 ./pretrain-merge "$one" -o "$work/damaged"
tap_done
