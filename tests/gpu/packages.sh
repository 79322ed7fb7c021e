#!/bin/sh
# A folder for tests/gpu/run.sh --packages: MPICH, HDF5, oneDNN, jansson, xxHash, PCRE2, utf8proc, zlib, zstd and pkg-config of
# Debian 12, unpacked and stripped of what a build does not need, and DIR.tar.gz (below 64 MiB), which
# run.sh takes as well. Needs apt-get and network, not root.
#   tests/gpu/packages.sh DIR
# For machines with glibc 2.36 or newer, a C and a C++ compiler and make.
[ $# -eq 1 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
most=65536 # KiB
mkdir -p "$1" && dir=$(cd "$1" && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# What is asked for by name, and what its libraries load that a machine may lack.
names='mpich libmpich-dev libhdf5-dev libdnnl-dev libjansson-dev libxxhash-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev
    pkgconf pkgconf-bin'
roots='libmpich12 libhdf5-103-1 libdnnl2 libjansson4 libxxhash0 libpcre2-8-0 libutf8proc2 zlib1g libzstd1 libpkgconf3 libhwloc15'
needs() {
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances $roots | sed -n 's/^\([a-z0-9][^ ]*\)$/\1/p' | sort -u |
        grep -v -e '^libc6$' -e '^libgcc-s1$' -e '^libgomp1$' -e '^libstdc++6$' -e '^gcc-' -e '^lsb-base$' \
            -e '^debconf$' -e '^cdebconf$' -e '^perl' -e '^tar$' -e '^dpkg$'
}
cd "$work" || exit 2
apt-get -q download $names $(needs) >apt.log 2>&1 || { cat apt.log >&2; exit 1; }
for deb in *.deb; do
    dpkg -x "$deb" unpacked || exit 1
done
# /lib, /bin are /usr's on Debian 12.
for part in lib bin; do
    [ ! -d "unpacked/$part" ] || [ -L "unpacked/$part" ] || { mkdir -p "unpacked/usr/$part" &&
        cp -a "unpacked/$part/." "unpacked/usr/$part/" && rm -r "unpacked/$part"; }
done

# Programs of MPICH and pkg-config, headers, and libraries that those and the build load.
cd unpacked || exit 1
multi=$(ls -d usr/lib/*-linux-gnu)
mkdir -p "$work/kept/usr/bin" "$work/kept/$multi"
cp -a usr/include "$work/kept/usr/"
for program in mpicc.mpich mpiexec.hydra hydra_pmi_proxy hydra_nameserver pkgconf; do
    cp -a "usr/bin/$program" "$work/kept/usr/bin/" 2>/dev/null
done
[ -e "$work/kept/usr/bin/pkg-config" ] || ln -s pkgconf "$work/kept/usr/bin/pkg-config"
cp -a "$multi/pkgconfig" "$work/kept/$multi/"
for name in mpich hdf5_serial dnnl jansson xxhash; do
    cp -a "$multi/lib$name".so* "$work/kept/$multi/" || exit 1
done
ls -d "$multi"/hdf5/serial/*.so >/dev/null 2>&1 && mkdir -p "$work/kept/$multi/hdf5" &&
    cp -a "$multi/hdf5/serial" "$work/kept/$multi/hdf5/"
here=$(pwd)
{
    for f in "$work/kept/usr/bin"/* "$work/kept/$multi"/*.so; do
        f=$(basename "$f")
        for at in "usr/bin/$f" "$multi/$f"; do
            [ ! -e "$at" ] || LD_LIBRARY_PATH=$here/$multi ldd "$at" 2>/dev/null |
                sed -n "s,.*=> \($here/[^ ]*\) .*,\1,p"
            [ ! -L "$at" ] || echo "$here/$(dirname "$at")/$(readlink "$at")"
        done
    done
} | sort -u | while read -r f; do
    [ -e "$f" ] || continue
    cp -a "$f" "$work/kept/$multi/"
    [ ! -L "$f" ] || cp -a "$(readlink -f "$f")" "$work/kept/$multi/"
done
# Plug-ins of UCX are loaded by name.
[ ! -d "$multi/ucx" ] || cp -a "$multi/ucx" "$work/kept/$multi/"
find "$work/kept" \( -name '*.a' -o -name '*.la' -o -name '*.f90' -o -name '*.mod' \) -delete

rm -rf "${dir:?}/usr"
cp -a "$work/kept/usr" "$dir/" || exit 1
tar -C "$dir" -czf "$dir.tar.gz" usr || exit 1
size=$(du -sk "$dir.tar.gz" | cut -f1)
echo "$dir: $(find "$dir" -type f | wc -l) files, $(($(du -sk "$dir" | cut -f1) / 1024)) MiB;" \
    "$dir.tar.gz: $((size / 1024)) MiB"
[ "$size" -le $most ] || { echo "packages.sh: more than $((most / 1024)) MiB" >&2; exit 1; }
