# each transfer against a plain loop
prog: tests/parallel/comm
np: 1 2 3 4 8
match: ^ok 34 
absent: ^not ok
