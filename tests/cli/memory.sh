# The plan's memory against the growth of resident memory, arenas above 1 GiB; and no allocation inside a step, which the
# program checks by itself from its second step on.
. "${srcdir:-.}/tests/lib.sh"
tap_plan 3
cd "$work" || exit 1
head -c 3000 /dev/zero >raw
cat >deck.nml <<'END'
&run directory = 'run', threads = 1 /
&train train_steps = 4, sequence_length = 128, global_batch_size = 4 /
&model hidden_size = 512, intermediate_size = 1408, num_hidden_layers = 2, num_attention_heads = 8, vocab_size = 68000 /
&data train = 'train.h5' /
&optim learning_rate = 1e-3 /
&checkpoint save_final = .false. /
END
"$builddir/pretrain-data" import --dtype uint16 --vocab-size 65000 --eod 64999 -o train.h5 raw >/dev/null 2>&1
tap_run 'four steps' "$builddir/pretrain" deck.nml
sed -n 's/^memory  grew by \([0-9.]*\) MiB, \([0-9.]*\) MiB were planned.*/\1 \2/p' out >grown
cat grown | sed 's/^/# grown, planned MiB: /'
tap_run 'more than 1 GiB' awk '{ exit !($2 > 1024) }' grown
if grep -q 'SANITIZE_FLAGS.*fsanitize' "$builddir/config.status"; then
    tap_skip 'the plan is within 5 % of it' 'sanitizers map memory of their own'
else
    tap_run 'the plan is within 5 % of it' awk '{ d = $1 / $2 - 1; exit !(d < 0.05 && d > -0.05) }' grown
fi
tap_done
