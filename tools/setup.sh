# What jobs/quickstart.sh and tests/run.sh share; sourced in the root of the source tree.
#   setup_packages NAME...   apt-get those that are absent (Debian, as root)
#   setup_finds_nvcc         holds where configure will find a CUDA compiler
#   setup_build              configure (once) and make in build/
setup_build_packages='autoconf automake pkg-config make gcc libc6-dev mpich libmpich-dev libhdf5-dev
    libdnnl-dev libjansson-dev libxxhash-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev'

setup_finds_nvcc() {
    for setup_p in "$NVCC" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "${CUDA_PATH:+$CUDA_PATH/bin/nvcc}" \
        "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
        [ -x "$setup_p" ] && "$setup_p" --version >/dev/null 2>&1 && return 0
    done
    return 1
}
# nvcc compiles with g++.
! setup_finds_nvcc || setup_build_packages="$setup_build_packages g++"

setup_packages() {
    setup_absent=
    for setup_p; do
        dpkg-query -W -f '${Status}' "$setup_p" 2>/dev/null | grep -q 'ok installed' ||
            setup_absent="$setup_absent $setup_p"
    done
    [ -n "$setup_absent" ] || { echo "   all there"; return 0; }
    echo "   apt-get install$setup_absent"
    { apt-get -q update && DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y install --no-install-recommends $setup_absent; } >/dev/null ||
        echo "cannot install$setup_absent; going on without" >&2
}

setup_build() {
    mkdir -p build || return 1
    if [ ! -f build/Makefile ]; then
        echo "   autoreconf -fi; cd build; ../configure $*"
        autoreconf -fi >build/autoreconf.log 2>&1 || { cat build/autoreconf.log; return 1; }
        (cd build && ../configure -q "$@") || return 1
    fi
    echo "   make -j$(nproc)"
    make -C build -j"$(nproc)" >build/make.log 2>&1 || { tail -n 60 build/make.log; return 1; }
}
