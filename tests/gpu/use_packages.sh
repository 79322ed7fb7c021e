# Sourced with $packages, a folder of unpacked Debian packages (tests/gpu/packages.sh): its compiler
# wrapper, headers and libraries come before the system's.
use_multi=$(ls -d "$packages"/usr/lib/*-linux-gnu 2>/dev/null | head -n 1)
[ -n "$use_multi" ] || { echo "tests/gpu/run.sh: no usr/lib/*-linux-gnu in $packages" >&2; exit 2; }
use_triple=${use_multi##*/}
use_include=$packages/usr/include

# before VARIABLE DIR...: DIR... in front of a path
before() {
    before_name=$1
    shift
    before_dirs=$(IFS=:; echo "$*")
    eval "$before_name=\$before_dirs\${$before_name:+:\$$before_name}; export $before_name"
}
before PATH "$packages/usr/bin"
before LD_LIBRARY_PATH "$use_multi" "$use_multi/hdf5/serial"
before LIBRARY_PATH "$use_multi" "$use_multi/hdf5/serial"
for use_variable in C_INCLUDE_PATH CPLUS_INCLUDE_PATH; do
    before $use_variable "$use_include" "$use_include/$use_triple" "$use_include/$use_triple/mpich" \
        "$use_include/hdf5/serial"
done
before PKG_CONFIG_PATH "$use_multi/pkgconfig" "$packages/usr/share/pkgconfig"
PKG_CONFIG_SYSROOT_DIR=$packages
export PKG_CONFIG_SYSROOT_DIR
# Debian's mpicc adds -I and -L of /usr after these, and calls the compiler that MPICH_CC names.
CPPFLAGS="-I$use_include/$use_triple/mpich $CPPFLAGS"
LDFLAGS="-L$use_multi $LDFLAGS"
MPICH_CC=${MPICH_CC:-gcc}
CC=${CC:-mpicc.mpich}
MPIRUN=${MPIRUN:-mpiexec.hydra}
export CPPFLAGS LDFLAGS MPICH_CC CC MPIRUN
