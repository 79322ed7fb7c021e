# every layout of the ranks, wrong counts, launchers, threads on cores
prog: tests/parallel/grid
np: 1 2 3 4 8
match: ^ok 26 
absent: ^not ok
