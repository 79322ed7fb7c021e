# Other people's libraries read what we write: h5py a checkpoint and an export, safetensors an export.
. "${srcdir:-.}/tests/lib.sh"
python=
for p in "${PYTHON:-python3}" /usr/bin/python3; do
    [ -n "$python" ] || ! "$p" -c 'import numpy, h5py' 2>/dev/null || python=$p
done
[ -n "$python" ] || tap_skip_all "no Python with numpy and h5py (PYTHON)"
check="$python $srcdir/tests/interop/checkpoint.py"

tap_plan 10
tap_run "checkpoints of three layouts" ./tests/interop/checkpoint_files "$work"
for run in one many; do
    step=$work/$run/step_00000003
    tap_run "$run: merged into HDF5" ./pretrain-merge "$step" -o "$work/$run.h5" --format hdf5 --with-optimizer
    tap_run "$run: merged into safetensors" ./pretrain-merge "$step" -o "$work/$run-model"
    tap_run "$run: index.h5 is the export, by h5py" $check index "$step/index.h5" "$work/$run.h5"
done
tap_run "float64: merged into bfloat16" ./pretrain-merge "$work/float64/step_00000003" -o "$work/bf16.h5" \
    --format hdf5 --dtype bfloat16
tap_run "rounded to nearest even, by h5py" $check rounded "$work/one.h5" "$work/bf16.h5"
if $python -c 'import safetensors' 2>/dev/null; then
    ./pretrain-merge "$work/many/step_00000003" -o "$work/shards" --max-shard-size 4kB >/dev/null
    tap_run "the safetensors library reads the export" $check folder "$work/one.h5" "$work/one-model" \
        "$work/many-model" "$work/shards"
else
    tap_skip "the safetensors library reads the export" "no safetensors for $python"
fi
tap_done
