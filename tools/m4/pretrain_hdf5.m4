# PRETRAIN_HDF5 - HDF5 1.10 or newer; the serial library is enough, a parallel one does no harm.
# Looks at --with-hdf5=DIR, HDF5_ROOT, pkg-config hdf5-serial and hdf5, h5cc, in this order.
# Sets HDF5_CPPFLAGS, HDF5_LIBS, pretrain_hdf5 (the version).
AC_DEFUN([PRETRAIN_HDF5], [
AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5=DIR], [HDF5 in DIR/include and DIR/lib @<:@look for it@:>@])],
    [], [with_hdf5=yes])
AC_ARG_VAR([HDF5_ROOT], [like --with-hdf5])
AS_IF([test "x$with_hdf5" = xno], [AC_MSG_ERROR([HDF5 is needed: checkpoints and token files are HDF5])])
AS_IF([test "x$with_hdf5" = xyes && test -n "$HDF5_ROOT"], [with_hdf5=$HDF5_ROOT])
AC_MSG_CHECKING([where HDF5 is])
AS_IF([test "x$with_hdf5" != xyes], [
    pretrain_where=$with_hdf5
    pretrain_lib=$with_hdf5/lib
    AS_IF([test -e "$with_hdf5/lib64/libhdf5.so"], [pretrain_lib=$with_hdf5/lib64])
    HDF5_CPPFLAGS="-I$with_hdf5/include"
    HDF5_LIBS="-L$pretrain_lib -Wl,-rpath,$pretrain_lib -lhdf5"
], [
    pretrain_where=
    for pretrain_name in hdf5-serial hdf5; do
        AS_IF([test -z "$pretrain_where" && $PKG_CONFIG --exists $pretrain_name 2>/dev/null], [
            pretrain_where="pkg-config $pretrain_name"
            HDF5_CPPFLAGS=`$PKG_CONFIG --cflags $pretrain_name`
            HDF5_LIBS=`$PKG_CONFIG --libs $pretrain_name`])
    done
    AS_IF([test -z "$pretrain_where"], [
        pretrain_where=`(h5cc -show) 2>/dev/null`
        HDF5_CPPFLAGS= HDF5_LIBS=
        for pretrain_word in $pretrain_where; do
            AS_CASE([$pretrain_word],
                [-I*|-D*], [HDF5_CPPFLAGS="$HDF5_CPPFLAGS $pretrain_word"],
                [-L*|-l*|*.a|*.so|-Wl*], [HDF5_LIBS="$HDF5_LIBS $pretrain_word"])
        done
        AS_CASE([" $HDF5_LIBS "], [*" -lhdf5 "*|*libhdf5.*], [], [HDF5_LIBS="$HDF5_LIBS -lhdf5"])
        pretrain_where=${pretrain_where:+h5cc}])
])
AC_MSG_RESULT([${pretrain_where:-nowhere special}])
pretrain_save_CPPFLAGS=$CPPFLAGS pretrain_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $HDF5_CPPFLAGS" LIBS="$HDF5_LIBS $LIBS"
AC_CACHE_CHECK([for HDF5 1.10 or newer], [pretrain_cv_hdf5],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>
#if H5_VERS_MAJOR < 2 && H5_VERS_MINOR < 10
#error old
#endif
]], [[return H5Dget_offset(0) != HADDR_UNDEF;]])],
        [AC_COMPUTE_INT([pretrain_major], [H5_VERS_MAJOR], [[#include <hdf5.h>]])
        AC_COMPUTE_INT([pretrain_minor], [H5_VERS_MINOR], [[#include <hdf5.h>]])
        AC_COMPUTE_INT([pretrain_release], [H5_VERS_RELEASE], [[#include <hdf5.h>]])
        pretrain_cv_hdf5=$pretrain_major.$pretrain_minor.$pretrain_release], [pretrain_cv_hdf5=no])])
CPPFLAGS=$pretrain_save_CPPFLAGS LIBS=$pretrain_save_LIBS
pretrain_hdf5=$pretrain_cv_hdf5
AS_IF([test $pretrain_hdf5 = no],
    [AC_MSG_ERROR([no HDF5 1.10 or newer: give --with-hdf5=DIR (Debian: libhdf5-dev); config.log has the reason])])
AC_SUBST([HDF5_CPPFLAGS])
AC_SUBST([HDF5_LIBS])
])
