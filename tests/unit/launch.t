# the launcher starts ranks, also more than cores, and hands on arguments and exit codes
prog: tests/unit/launch
np: 1 2 4
args: 3 'two words'
exit: 3
match: ranks: two words$
absent: ^8 ranks
