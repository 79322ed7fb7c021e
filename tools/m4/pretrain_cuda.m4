# PRETRAIN_CUDA - the CUDA toolkit with cuBLAS, and NCCL and cuDNN where they are.
# Looks at --with-cuda=DIR, NVCC, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda, in this order.
# Defines HAVE_CUDA, HAVE_NCCL, HAVE_CUDNN (also conditionals of automake).
# Sets NVCC, CUDA_ARCHS, CUDA_GENCODE, CUDA_CPPFLAGS, CUDA_LIBS, pretrain_cuda (for people).
# The driver (libcuda) is never linked: one program runs with and without it.

# PRETRAIN_CUDA_TOOLKIT - the compiler and the folders that belong to it.
AC_DEFUN([PRETRAIN_CUDA_TOOLKIT], [
AS_CASE([$with_cuda],
    [auto|yes], [pretrain_path=${CUDA_HOME:+$CUDA_HOME/bin$PATH_SEPARATOR}${CUDA_PATH:+$CUDA_PATH/bin$PATH_SEPARATOR}$PATH$PATH_SEPARATOR/usr/local/cuda/bin],
    [with_cuda=`cd "$with_cuda" 2>/dev/null && pwd || AS_ECHO(["$with_cuda"])`
    pretrain_path=$with_cuda/bin])
AC_PATH_PROG([NVCC], [nvcc], [], [$pretrain_path])
AS_IF([test -z "$NVCC"], [pretrain_cuda_lacks="no nvcc in $pretrain_path"], [
    # nvcc's own word: it may be a link or a wrapper.
    pretrain_top=`"$NVCC" --dryrun -x cu -E /dev/null 2>&1 | sed -n 's/^#\\$ TOP=//p'`
    pretrain_top=`cd "$pretrain_top" 2>/dev/null && pwd -P`
    pretrain_release=`"$NVCC" --version 2>/dev/null | sed -n 's/.* release \(@<:@0-9.@:>@*\).*/\1/p'`
    AS_IF([test -z "$pretrain_release"], [pretrain_cuda_lacks="$NVCC does not run"])
    pretrain_lib=
    for pretrain_try in lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib ../x86_64-linux-gnu; do
        AS_IF([test -z "$pretrain_lib" && test -e "$pretrain_top/$pretrain_try/libcudart.so"],
            [pretrain_lib=`cd "$pretrain_top/$pretrain_try" && pwd -P`])
    done
    AS_IF([test -d "$pretrain_top/include"], [CUDA_CPPFLAGS="-isystem $pretrain_top/include"])
    AS_IF([test -n "$pretrain_lib"], [
        CUDA_LIBS="-L$pretrain_lib"
        pretrain_listed=`(PATH=$PATH:/sbin:/usr/sbin; ldconfig -p) 2>/dev/null | grep -F " $pretrain_lib/libcudart.so"`
        AS_IF([test -z "$pretrain_listed"], [CUDA_LIBS="$CUDA_LIBS -Wl,-rpath,$pretrain_lib"])])
])
])

# PRETRAIN_CUDA_LIBRARIES - cudart and cuBLAS must be there, NCCL and cuDNN may be.
AC_DEFUN([PRETRAIN_CUDA_LIBRARIES], [
pretrain_save_CPPFLAGS=$CPPFLAGS pretrain_save_LIBS=$LIBS pretrain_names=
CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS" LIBS="$CUDA_LIBS $LIBS"
AC_CHECK_HEADERS([cuda_runtime_api.h cublas_v2.h], [],
    [pretrain_cuda_lacks="no $ac_header in $pretrain_top/include"])
AC_CHECK_LIB([cudart], [cudaGetDeviceCount], [pretrain_names=-lcudart],
    [pretrain_cuda_lacks="no libcudart in ${pretrain_lib:-$pretrain_top}"])
AC_CHECK_LIB([cublasLt], [cublasLtCreate], [pretrain_names="-lcublasLt $pretrain_names"],
    [pretrain_cuda_lacks="no libcublasLt in ${pretrain_lib:-$pretrain_top}"])
AC_CHECK_LIB([cublas], [cublasCreate_v2], [pretrain_names="-lcublas $pretrain_names"],
    [pretrain_cuda_lacks="no libcublas in ${pretrain_lib:-$pretrain_top}"], [-lcublasLt])
AC_CHECK_HEADER([nccl.h], [AC_CHECK_LIB([nccl], [ncclCommInitRankConfig], [
    have_nccl=yes pretrain_names="-lnccl $pretrain_names"
    AC_COMPUTE_INT([pretrain_major], [NCCL_MAJOR], [[#include <nccl.h>]])
    AC_COMPUTE_INT([pretrain_minor], [NCCL_MINOR], [[#include <nccl.h>]])
    AC_COMPUTE_INT([pretrain_patch], [NCCL_PATCH], [[#include <nccl.h>]])
    pretrain_nccl="NCCL $pretrain_major.$pretrain_minor.$pretrain_patch"])])
AC_CHECK_HEADER([cudnn.h], [AC_CHECK_LIB([cudnn], [cudnnBackendFinalize], [
    have_cudnn=yes pretrain_names="-lcudnn $pretrain_names"
    AC_COMPUTE_INT([pretrain_major], [CUDNN_MAJOR], [[#include <cudnn.h>]])
    AC_COMPUTE_INT([pretrain_minor], [CUDNN_MINOR], [[#include <cudnn.h>]])
    AC_COMPUTE_INT([pretrain_patch], [CUDNN_PATCHLEVEL], [[#include <cudnn.h>]])
    pretrain_cudnn="cuDNN $pretrain_major.$pretrain_minor.$pretrain_patch"])])
CPPFLAGS=$pretrain_save_CPPFLAGS LIBS=$pretrain_save_LIBS
# Programs that never come near a device do not load these libraries.
CUDA_LIBS="-Wl,--push-state,--as-needed $CUDA_LIBS $pretrain_names -Wl,--pop-state"
])

# PRETRAIN_CUDA_COMPILER - the architectures that this nvcc knows, and whether it compiles a kernel.
AC_DEFUN([PRETRAIN_CUDA_COMPILER], [
AC_MSG_CHECKING([which of the GPU architectures $CUDA_ARCHS nvcc knows])
pretrain_known=" "`"$NVCC" --list-gpu-code 2>/dev/null | tr '\n' ' '`
pretrain_archs= pretrain_last=
for pretrain_try in $CUDA_ARCHS; do
    AS_CASE([$pretrain_known], [*" sm_$pretrain_try "*], [
        pretrain_archs="$pretrain_archs $pretrain_try" pretrain_last=$pretrain_try
        CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$pretrain_try,code=sm_$pretrain_try"])
done
AC_MSG_RESULT([${pretrain_archs:-none}])
AS_IF([test -z "$pretrain_last"],
    [pretrain_cuda_lacks="$NVCC knows none of the architectures $CUDA_ARCHS (CUDA_ARCHS)"], [
    CUDA_ARCHS=`echo $pretrain_archs`
    CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$pretrain_last,code=compute_$pretrain_last"
    AC_MSG_CHECKING([whether nvcc compiles a kernel])
    cat >conftest.cu <<'_ACEOF'
#include <cuda_bf16.h>
__global__ void scale(__nv_bfloat16 *x, float by)
{
    x[[threadIdx.x]] = __float2bfloat16(by * __bfloat162float(x[[threadIdx.x]]));
}
void call(__nv_bfloat16 *x)
{
    scale<<<1, 32>>>(x, 2);
}
_ACEOF
    AS_IF([AC_TRY_COMMAND(["$NVCC" -std=c++17 $CUDA_GENCODE $NVCCFLAGS -c conftest.cu -o conftest.$ac_objext >&AS_MESSAGE_LOG_FD])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
        pretrain_cuda_lacks="$NVCC cannot compile a kernel: config.log has its message; it needs a g++ that it knows (Debian: g++; another: NVCCFLAGS='-ccbin g++-12')"])
    rm -f conftest.cu conftest.$ac_objext])
])

AC_DEFUN([PRETRAIN_CUDA], [
AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [the part for GPUs, by the CUDA toolkit in DIR @<:@auto: where one is found@:>@])],
    [], [with_cuda=auto])
AC_ARG_VAR([CUDA_HOME], [folder of the CUDA toolkit, where --with-cuda names none])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for NVCC])
AC_ARG_VAR([CUDA_ARCHS], [GPU architectures to compile for @<:@80 90 100@:>@])
: ${CUDA_ARCHS="80 90 100"}
CUDA_CPPFLAGS= CUDA_LIBS= CUDA_GENCODE= have_cuda=no have_nccl=no have_cudnn=no
pretrain_cuda_lacks= pretrain_part="no CUDA" pretrain_nccl="no NCCL" pretrain_cudnn="no cuDNN"
AS_IF([test "x$with_cuda" = xno], [pretrain_cuda="none: configured by --without-cuda"], [
    PRETRAIN_CUDA_TOOLKIT
    AS_IF([test -z "$pretrain_cuda_lacks"], [PRETRAIN_CUDA_LIBRARIES])
    AS_IF([test -z "$pretrain_cuda_lacks"], [PRETRAIN_CUDA_COMPILER])
    AS_IF([test -z "$pretrain_cuda_lacks"], [
        have_cuda=yes
        pretrain_kernels=`AS_ECHO(["$pretrain_archs"]) | sed "s, , sm_,g; s,^ ,,"`
        pretrain_part="CUDA $pretrain_release ($pretrain_kernels), $pretrain_nccl, $pretrain_cudnn"
        pretrain_cuda="CUDA $pretrain_release in $pretrain_top for $pretrain_kernels; $pretrain_nccl, $pretrain_cudnn"], [
        CUDA_CPPFLAGS= CUDA_LIBS= CUDA_GENCODE= have_nccl=no have_cudnn=no
        pretrain_cuda="none: $pretrain_cuda_lacks"
        AS_IF([test "x$with_cuda" = xauto],
            [AC_MSG_NOTICE([no GPU part: $pretrain_cuda_lacks])],
            [AC_MSG_ERROR([--with-cuda: $pretrain_cuda_lacks
Give --with-cuda=DIR with DIR/bin/nvcc, make such a folder by tools/cuda-toolkit.sh DIR, or leave the GPU part out: --without-cuda])])])
])
AS_IF([test $have_cuda = yes], [AC_DEFINE([HAVE_CUDA], [1], [The part for GPUs is built])])
AC_DEFINE_UNQUOTED([GPU_PART], ["$pretrain_part"], [What --version says of the part for GPUs])
AS_IF([test $have_nccl = yes], [AC_DEFINE([HAVE_NCCL], [1], [NCCL communicates between GPUs])])
AS_IF([test $have_cudnn = yes], [AC_DEFINE([HAVE_CUDNN], [1], [cuDNN may do the attention])])
AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
AM_CONDITIONAL([HAVE_NCCL], [test $have_nccl = yes])
AM_CONDITIONAL([HAVE_CUDNN], [test $have_cudnn = yes])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBS])
AC_SUBST([CUDA_GENCODE])
AC_SUBST([with_cuda])
])
