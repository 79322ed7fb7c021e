prog: tests/parallel/checkpoint
np: 1 2 4
args: @tmp@
absent: not ok
