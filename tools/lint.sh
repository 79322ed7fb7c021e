#!/bin/sh
# lint.sh: the rules of doc/design.md that a compiler cannot check. Run in the source folder.
# LINT_COMPILE (a compiler with its flags, run in LINT_BUILD) also compiles each header alone; those of
# cuda/ by LINT_COMPILE_CUDA_C or LINT_COMPILE_CUDA, against the emulation's CUDA.
LC_ALL=C
export LC_ALL
bad=0

sources=$(find src cuda tools tests \( -name '*.[ch]' -o -name '*.c[cu]' -o -name '*.inc' \) ! -name Makefile.inc \
    ! -path '*/build-aux/*' | sort)
${AWK:-awk} -f tools/lint.awk src/LAYERS $sources || bad=1

# Every file of ours is named by a Makefile, so that it is in the distribution.
listed=$(cat Makefile.am $(find src cuda tools tests -name Makefile.inc))
folders=$(ls -d src cuda tools tests input jobs doc 2>/dev/null)
for f in $(find $folders -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.c[cu]' -o -name '*.inc' \
    -o -name '*.t' -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o -name '*.nml' -o -name '*.md' \) \
    ! -name Makefile.inc ! -path '*/build-aux/*' | sort); do
    found=0 part=$f
    while [ $found = 0 ]; do
        case " $(echo $listed) " in *" $part "*) found=1 ;; esac
        case $part in */*/*) part=${part%/*} ;; *) break ;; esac
    done
    [ $found = 1 ] || { echo "$f: no Makefile.am or Makefile.inc names it"; bad=1; }
done

if [ -n "$LINT_COMPILE" ]; then
    here=$(pwd) dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
    alone() {   # alone HEADER COMPILER...
        echo "#include \"$here/$1\"" >"$dir/alone.c"
        shift
        (cd "${LINT_BUILD:-.}" && "$@" -Werror -c -o "$dir/alone.o" "$dir/alone.c") 2>"$dir/said"
    }
    for h in $(find src cuda -name '*.h' | sort); do
        case $h in
        src/*) alone "$h" $LINT_COMPILE ;;
        *) [ -z "$LINT_COMPILE_CUDA" ] || alone "$h" $LINT_COMPILE_CUDA_C || alone "$h" $LINT_COMPILE_CUDA ;;
        esac || { echo "$h: does not compile alone"; grep error "$dir/said" | head -3; bad=1; }
    done
fi
exit $bad
