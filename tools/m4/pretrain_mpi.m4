# PRETRAIN_MPI - CC must build MPI programs (a wrapper, or a compiler that finds libmpi).
# Sets pretrain_mpi (for people) and MPIRUN (the launcher that belongs to CC).
AC_DEFUN([PRETRAIN_MPI], [
AC_SEARCH_LIBS([MPI_Init], [mpi mpich], [],
    [AC_MSG_ERROR([$CC cannot link MPI programs: set CC to an MPI compiler, such as mpicc (Debian: libmpich-dev)])])
AC_CACHE_CHECK([for MPI-3.1 in mpi.h], [pretrain_cv_mpi],
    [AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#if MPI_VERSION < 3 || (MPI_VERSION == 3 && MPI_SUBVERSION < 1)
#error old
#endif
]])], [pretrain_cv_mpi=yes], [pretrain_cv_mpi=no])])
AS_IF([test $pretrain_cv_mpi = no], [AC_MSG_ERROR([$CC finds no mpi.h of MPI 3.1 or newer: set CC to an MPI compiler, such as mpicc])])
AC_CACHE_CHECK([which MPI it is], [pretrain_cv_mpi_name],
    [AC_COMPUTE_INT([pretrain_major], [OMPI_MAJOR_VERSION], [[#include <mpi.h>]], [pretrain_major=0])
    AC_COMPUTE_INT([pretrain_minor], [OMPI_MINOR_VERSION], [[#include <mpi.h>]], [pretrain_minor=0])
    AC_COMPUTE_INT([pretrain_mpich], [MPICH_NUMVERSION], [[#include <mpi.h>]], [pretrain_mpich=0])
    AS_IF([test $pretrain_major -gt 0], [pretrain_cv_mpi_name="Open MPI $pretrain_major.$pretrain_minor"],
        [test $pretrain_mpich -gt 0],
        [pretrain_cv_mpi_name="MPICH `expr $pretrain_mpich / 10000000`.`expr $pretrain_mpich / 100000 % 100`"],
        [pretrain_cv_mpi_name="MPI 3.1 or newer"])])
pretrain_mpi=$pretrain_cv_mpi_name

AC_ARG_VAR([MPIRUN], [MPI launcher that make check uses, as in "$MPIRUN -n 4 program"])
set dummy $CC
pretrain_cc=$[2]
pretrain_base=`AS_BASENAME(["$pretrain_cc"])`
AS_CASE([$pretrain_base], [mpicc.*], [pretrain_suffix=`AS_ECHO(["$pretrain_base"]) | sed 's/^mpicc//'`],
    [pretrain_suffix=])
AS_CASE([$pretrain_cc], [*/*], [pretrain_path=`AS_DIRNAME(["$pretrain_cc"])`$PATH_SEPARATOR$PATH],
    [pretrain_path=$PATH])
AC_CHECK_PROGS([MPIRUN],
    [mpiexec$pretrain_suffix mpirun$pretrain_suffix mpiexec mpirun], [], [$pretrain_path])
])
