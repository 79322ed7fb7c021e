#!/bin/sh
# A folder with a CUDA toolkit, made of NVIDIA's wheels on PyPI: for machines that have none, without root.
parts='nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl
    nvidia-cuda-cuobjdump nvidia-cuda-nvrtc nvidia-cublas nvidia-nccl-cu13 nvidia-cudnn-cu13'
needed_mib=3584     # 2.3 GiB stay; the wheel that is being unpacked comes on top

usage() {
    cat <<END
usage: tools/cuda-toolkit.sh DIR

Makes DIR a CUDA toolkit (nvcc, cuBLAS, NCCL, cuDNN) from PyPI's wheels, for
    ../configure --with-cuda=DIR
It downloads 1.6 GB and takes 2.3 GiB; python3 with venv must be there (Debian: python3-venv).
Safe to run again: a finished folder stays as it is, an interrupted one is completed.
The programs that are built with it need DIR's libraries as long as they are used.
END
}

stop() {
    echo "tools/cuda-toolkit.sh: $1" >&2
    exit 1
}

case $#:$1 in
1:-h | 1:--help) usage; exit 0 ;;
1:-*) usage >&2; exit 2 ;;
1:?*) ;;
*) usage >&2; exit 2 ;;
esac

mkdir -p "$1" || stop "cannot make $1"
dir=$(cd "$1" && pwd) || exit 1
work=$dir/.making
if [ -f "$dir/VERSIONS" ] && "$dir/bin/nvcc" --version >/dev/null 2>&1; then
    echo "$dir is complete:"
    cat "$dir/VERSIONS"
    exit 0
fi
[ -d "$work" ] || [ -z "$(ls -A "$dir")" ] ||
    stop "$dir has files in it that are none of a toolkit of mine: name a new or an empty folder"

case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-aarch64) ;;
*) stop "NVIDIA has no wheels for $(uname -s) on $(uname -m)" ;;
esac
python3 -c 'import venv, ensurepip' 2>/dev/null ||
    stop "no python3 with venv (Debian: apt-get install python3-venv)"
mkdir -p "$work/tmp" || stop "cannot make $work/tmp"
free_mib=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1024) }')
there_mib=$(du -sk "$work" | awk '{ print int($1 / 1024) }')
[ $((free_mib + there_mib)) -ge $needed_mib ] ||
    stop "$dir has $free_mib MiB free, and $((needed_mib - there_mib)) are needed"

# Wheel by wheel, so that one that is done need not be done again.
TMPDIR=$work/tmp
export TMPDIR
pip() {
    "$work/venv/bin/python" -m pip --disable-pip-version-check --no-cache-dir "$@"
}
pip --version >/dev/null 2>&1 || {
    rm -rf "$work/venv"
    python3 -m venv "$work/venv" || stop "python3 -m venv failed"
}
for p in $parts; do
    echo "pip install $p"
    pip install -q --only-binary :all: "$p" || stop "no $p: run this again when PyPI can be reached"
done

# One folder of hard links, with the names that compilers look for.
wheels=$(echo "$work"/venv/lib/python3*/site-packages/nvidia)
rm -rf "$work/tree"
mkdir -p "$work/tree/include" "$work/tree/lib" || exit 1
for w in "$wheels"/cu[0-9]* "$wheels/nccl" "$wheels/cudnn"; do
    cp -Rl "$w/." "$work/tree" || stop "cannot link $w into $work/tree"
done
for l in "$work"/tree/lib/*.so.*; do
    link=${l%%.so.*}.so
    [ -e "$link" ] || ln -s "${l##*/}" "$link"
done
ln -s lib "$work/tree/lib64"
[ -x "$work/tree/bin/nvcc" ] || stop "the wheels have another layout than I know: no nvidia/cu*/bin/nvcc in them"

for f in "$work"/tree/*; do
    rm -rf "$dir/${f##*/}"
    mv "$f" "$dir" || exit 1
done
pip list --format freeze | grep '^nvidia-' >"$dir/VERSIONS"
rm -rf "$work"
echo "$dir is complete ($(du -sm "$dir" | cut -f 1) MiB):"
cat "$dir/VERSIONS"
