#!/bin/sh
# The tree keeps the rules of tools/lint.sh, and lint sees what breaks them.
. "${srcdir:-.}/tests/lib.sh"
tap_plan 23

lint_here() { (cd "$srcdir" && LINT_BUILD=$builddir sh tools/lint.sh); }
tap_run "the tree is clean" lint_here

# A small tree; each case puts one line into one file and expects one complaint.
cd "$work" || exit 1
mkdir -p src/base src/input src/text src/train cuda tools tests input jobs doc
cp "$srcdir/src/LAYERS" src/
cp "$srcdir/tools/lint.sh" "$srcdir/tools/lint.awk" tools/
for f in Makefile.am src/Makefile.inc cuda/Makefile.inc tools/Makefile.inc tests/Makefile.inc; do
    echo 'X = src/base/a.h src/input/b.c src/text/c.c src/train/d.c cuda/e.cu tools/lint.sh tools/lint.awk' >$f
done
LINT_COMPILE=
export LINT_COMPILE
plant() {
    echo 'int a(void) LOCAL; /* MPI_Send */' >src/base/a.h
    echo '#include "base/a.h"' >src/input/b.c
    echo 'void f(void) { g("exit(1)"); p->free(q); }' >src/text/c.c
    echo '#include "input/b.h"' >src/train/d.c
    echo '#include "compute/operand.h"' >cuda/e.cu
    rm -f src/base/new.c
}
breaks() {
    plant
    echo "$2" >>"$3"
    sh tools/lint.sh >out 2>&1
    rc=$?
    if [ $rc -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] && grep -q -e "$1" out; then
        tap_ok "sees: $1"
    else
        tap_not_ok "sees: $1" out
    fi
}
plant
tap_run "a clean tree passes" sh tools/lint.sh
breaks 'may not include text/' '#include "text/x.h"' src/input/b.c
breaks 'may not include train/' '#include "train/x.h"' src/base/a.h
breaks 'MPI is called in' 'MPI_Send();' src/input/b.c
breaks 'memory comes from' 'x = malloc (3);' src/input/b.c
breaks 'HDF5 is called in' 'H5Fopen(x);' src/train/d.c
breaks 'the program ends in' 'exit(3);' src/train/d.c
breaks '100 columns' "/* $(printf '%0120d' 0) */" src/text/c.c
breaks 'unfinished' '/* TO''DO */' src/text/c.c
breaks 'COLL(comm) or LOCAL' 'int b(int x);' src/base/a.h
breaks 'CUDA is called in' 'cudnnCreate(&h);' src/train/d.c
breaks 'CUDA is called in' 'x = CUBLAS_OP_N;' src/train/d.c
breaks 'headers of the CUDA' '#include <cuda_runtime_api.h>' src/train/d.c
breaks 'tables are chosen' '#ifdef HAVE_CUDA' src/train/d.c
breaks 'concerns cuda/' '#if defined(HAVE_NCCL)' src/train/d.c
breaks 'not model/params.h' '#include "model/params.h"' cuda/e.cu
breaks 'name its folder' '#include "dialect.h"' cuda/e.cu
breaks 'speak the dialect' '__shared__ float x;' cuda/e.cu
breaks 'speak the dialect' 'asm volatile("bar.sync 0;");' cuda/e.cu
breaks 'launched by LAUNCH' 'f<<<1, 32>>>(x);' cuda/e.cu
breaks 'do not print' 'printf("%d", x);' cuda/e.cu
breaks 'no Makefile' 'int x;' src/base/new.c
tap_done
