# PRETRAIN_PRODUCTS - who multiplies matrices: oneDNN, else any CBLAS, else loops of our own.
# Defines HAVE_DNNL (and HAVE_ONEAPI_DNNL_DNNL_H or HAVE_DNNL_H) or HAVE_CBLAS.
# Sets PRODUCTS_CPPFLAGS, PRODUCTS_LIBS, pretrain_products (for people).
AC_DEFUN([PRETRAIN_DNNL], [
pretrain_header=none
AC_CHECK_HEADERS([oneapi/dnnl/dnnl.h dnnl.h], [pretrain_header=$ac_header; break])
AS_IF([test $pretrain_header != none], [AC_CHECK_LIB([dnnl], [dnnl_sgemm], [
    pretrain_dir=`AS_ECHO(["$pretrain_header"]) | sed 's/dnnl\.h$//'`
    AC_COMPUTE_INT([pretrain_major], [DNNL_VERSION_MAJOR], [[#include <${pretrain_dir}dnnl_version.h>]])
    AC_COMPUTE_INT([pretrain_minor], [DNNL_VERSION_MINOR], [[#include <${pretrain_dir}dnnl_version.h>]])
    AC_COMPUTE_INT([pretrain_patch], [DNNL_VERSION_PATCH], [[#include <${pretrain_dir}dnnl_version.h>]])
    AC_DEFINE([HAVE_DNNL], [1], [Products by oneDNN])
    PRODUCTS_LIBS=-ldnnl
    pretrain_products="oneDNN $pretrain_major.$pretrain_minor.$pretrain_patch"])])
])

AC_DEFUN([PRETRAIN_CBLAS], [
pretrain_save_CPPFLAGS=$CPPFLAGS pretrain_save_LIBS=$LIBS pretrain_found=
for pretrain_try in openblas cblas blis -lopenblas -lcblas -lblis -lmkl_rt -lblas; do
    AS_IF([test -z "$pretrain_found"], [
        pretrain_flags= pretrain_libs=
        AS_CASE([$pretrain_try], [-l*], [pretrain_libs=$pretrain_try],
            [pretrain_flags=`$PKG_CONFIG --cflags $pretrain_try 2>/dev/null`
            pretrain_libs=`$PKG_CONFIG --libs $pretrain_try 2>/dev/null`])
        AS_IF([test -n "$pretrain_libs"], [
            AC_MSG_CHECKING([for CBLAS in $pretrain_try])
            CPPFLAGS="$pretrain_save_CPPFLAGS $pretrain_flags" LIBS="$pretrain_libs $pretrain_save_LIBS"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cblas.h>]],
                [[float a = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &a, 1);]])],
                [pretrain_found=$pretrain_try
                PRODUCTS_CPPFLAGS=$pretrain_flags PRODUCTS_LIBS=$pretrain_libs])
            AC_MSG_RESULT([${pretrain_found:-no}])])])
done
CPPFLAGS=$pretrain_save_CPPFLAGS LIBS=$pretrain_save_LIBS
AS_IF([test -n "$pretrain_found"], [
    AC_DEFINE([HAVE_CBLAS], [1], [Products by CBLAS])
    pretrain_products="CBLAS ($pretrain_found)"])
])

AC_DEFUN([PRETRAIN_PRODUCTS], [
AC_ARG_WITH([products],
    [AS_HELP_STRING([--with-products=WHO], [matrix products by dnnl, cblas, none (own loops) @<:@auto: the first found@:>@])],
    [], [with_products=auto])
pretrain_products= PRODUCTS_CPPFLAGS= PRODUCTS_LIBS=
AS_CASE([$with_products], [auto|dnnl|cblas|none], [],
    [AC_MSG_ERROR([--with-products=$with_products: known are auto, dnnl, cblas, none])])
AS_CASE([$with_products], [auto|dnnl], [PRETRAIN_DNNL])
AS_IF([test -z "$pretrain_products"], [AS_CASE([$with_products], [auto|cblas], [PRETRAIN_CBLAS])])
AS_IF([test -z "$pretrain_products"], [
    AS_CASE([$with_products],
        [dnnl|cblas], [AC_MSG_ERROR([--with-products=$with_products: it is not there (Debian: libdnnl-dev, libopenblas-dev)])],
        [auto], [AC_MSG_WARN([no oneDNN and no CBLAS: products will be slow (Debian: libdnnl-dev)])])
    pretrain_products="own loops"])
AC_DEFINE_UNQUOTED([PRODUCTS_NAME], ["$pretrain_products"], [Who multiplies matrices, as found at configure])
AC_SUBST([PRODUCTS_CPPFLAGS])
AC_SUBST([PRODUCTS_LIBS])
])
