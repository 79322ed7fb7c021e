# PRETRAIN_CUEMU - what the emulation of CUDA in tests/cuemu needs: a C++ compiler, sanitizers.
# Sets CUEMU_VARIANTS (of: plain asan tsan; or sanitized) and the conditionals HAVE_CUEMU, HAVE_CUEMU_ASAN,
# HAVE_CUEMU_TSAN. After --enable-sanitize is known: then all objects have that one sanitizer.
AC_DEFUN([PRETRAIN_CUEMU], [
CUEMU_VARIANTS= CUEMU_PLAIN_FLAGS=
AC_LANG_PUSH([C++])
pretrain_save_CXXFLAGS=$CXXFLAGS
CXXFLAGS="$CXXFLAGS -std=c++17"
AC_CACHE_CHECK([whether $CXX compiles C++17], [pretrain_cv_cuemu],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <functional>]],
        [[if constexpr (sizeof(int) > 1) return std::function<int()>([] { return 0; })();]])],
        [pretrain_cv_cuemu=yes], [pretrain_cv_cuemu=no])])
CXXFLAGS="$pretrain_save_CXXFLAGS -std=c++17 -fsanitize=address,undefined"
AC_CACHE_CHECK([for the address sanitizer in $CXX], [pretrain_cv_cuemu_asan],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM(
        [[extern "C" void __sanitizer_finish_switch_fiber(void *, const void **, unsigned long *);]],
        [[__sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);]])],
        [pretrain_cv_cuemu_asan=yes], [pretrain_cv_cuemu_asan=no])])
CXXFLAGS="$pretrain_save_CXXFLAGS -std=c++17 -fsanitize=thread"
AC_CACHE_CHECK([for the race detector in $CXX], [pretrain_cv_cuemu_tsan],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[extern "C" void *__tsan_create_fiber(unsigned);]],
        [[return __tsan_create_fiber(0) == nullptr;]])],
        [pretrain_cv_cuemu_tsan=yes], [pretrain_cv_cuemu_tsan=no])])
CXXFLAGS=$pretrain_save_CXXFLAGS
AC_LANG_POP([C++])
AS_IF([test $pretrain_cv_cuemu = yes], [
    AS_IF([test "x$enable_sanitize" != xno],
        [CUEMU_VARIANTS=sanitized CUEMU_PLAIN_FLAGS="$SANITIZE_FLAGS -DCUEMU_ASAN"], [
        CUEMU_VARIANTS=plain
        AS_IF([test $pretrain_cv_cuemu_asan = yes], [CUEMU_VARIANTS="$CUEMU_VARIANTS asan"])
        AS_IF([test $pretrain_cv_cuemu_tsan = yes], [CUEMU_VARIANTS="$CUEMU_VARIANTS tsan"])])])
AM_CONDITIONAL([HAVE_CUEMU], [test $pretrain_cv_cuemu = yes])
AM_CONDITIONAL([HAVE_CUEMU_ASAN],
    [AS_CASE([$CUEMU_VARIANTS], [*asan*], [:], [false])])
AM_CONDITIONAL([HAVE_CUEMU_TSAN],
    [AS_CASE([$CUEMU_VARIANTS], [*tsan*], [:], [false])])
AC_SUBST([CUEMU_VARIANTS])
AC_SUBST([CUEMU_PLAIN_FLAGS])
])
