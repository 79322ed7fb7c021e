# The progress line: on a terminal, also behind mpirun, and nowhere else.
. "${srcdir:-.}/tests/lib.sh"
tap_need_mpi
script -qec true /dev/null >/dev/null 2>&1 </dev/null || tap_skip_all "no script to make a terminal"
tap_plan 6
cd "$work" || exit 1
head -c 6000 /dev/zero >raw
cat >deck.nml <<'END'
&run directory = 'run', threads = 1 /
&train train_steps = 5, sequence_length = 16, global_batch_size = 4 /
&model hidden_size = 32, intermediate_size = 64, num_hidden_layers = 1, num_attention_heads = 2 /
&data train = 'train.h5' /
&optim learning_rate = 1e-3 /
&log interval = 5 /
&checkpoint save_final = .false. /
END
"$builddir/pretrain-data" import --dtype uint16 --vocab-size 65 --eod 64 -o train.h5 raw >/dev/null 2>&1
on_terminal() { script -qec "$1" /dev/null </dev/null; }
tap_run 'under mpirun on a terminal' on_terminal "$MPIRUN -n 2 $builddir/pretrain deck.nml"
tap_match 'the line is replaced at every step' 'step 4 of 5, .* left'
tap_run 'without mpirun' on_terminal "$builddir/pretrain deck.nml"
tap_match 'the line is there too' 'step 4 of 5, .* left'
mpi 2 "$builddir/pretrain" deck.nml >plain 2>&1
tap_absent 'not in a file' 'step 4 of 5' plain
tap_absent 'nor in log.txt' "$(printf '\r')" run/log.txt
tap_done
