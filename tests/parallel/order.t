# what MPI is asked for, in the order of the action lists, and every message the one that the list names
prog: tests/parallel/order
np: 1 2 3 4 8
match: ^ok 24 
absent: ^not ok
