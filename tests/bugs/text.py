"""Situations of texts and tokenizers that went wrong in other programs, as experiments with the built programs: counters in
32 bits, ids above 65535, templates with and without an end token, whole words before merges, added tokens, NUL bytes, and
texts without a break. Ids are written down here or follow from the vocabulary; tests/interop compares with the libraries."""

import os, resource, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

LETTERS = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
ALPHABET = {b: chr(b) for b in LETTERS}
ALPHABET.update({b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in ALPHABET)})
LEVEL = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=True)


def spell(text):
    return ''.join(ALPHABET[b] for b in text.encode())


def added(id, content, **flags):
    return {**dict(id=id, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False), **flags}


def template(front, back):
    piece = lambda name: {'SpecialToken': {'id': name, 'type_id': 0}}
    single = [piece('<s>')] * front + [{'Sequence': {'id': 'A', 'type_id': 0}}] + [piece('</s>')] * back
    return dict(type='TemplateProcessing', single=single, pair=single + [{'Sequence': {'id': 'B', 'type_id': 1}}],
                special_tokens={n: dict(id=n, ids=[i], tokens=[n]) for n, i in (('<s>', 257), ('</s>', 256))})


def vocabulary(words=(), merges=()):
    """Ids 0..255 are the bytes."""
    vocab = {ALPHABET[b]: b for b in range(256)}
    for w in words:
        vocab.setdefault(spell(w), len(vocab))
    return dict(type='BPE', vocab=vocab, merges=[[spell(a), spell(b)] for a, b in merges])


def tokenizer(s, name, model, tokens=(), post=None, **parts):
    path = s.path(name)
    with open(path, 'w') as f:
        json.dump({**dict(version='1.0', truncation=None, padding=None, added_tokens=list(tokens), normalizer=None,
                          pre_tokenizer=LEVEL, post_processor=post, decoder=LEVEL, model=model), **parts}, f)
    return path


ENDS = [added(256, '</s>', special=True), added(257, '<s>', special=True)]


def tokenize(s, path, texts, *options):
    """-> ids of the token file of these documents."""
    import h5py
    source, out = s.path('in.jsonl'), s.path('out.h5')
    with open(source, 'w') as f:
        f.write(''.join(json.dumps({'text': t}) + '\n' for t in texts))
    if os.path.exists(out):
        os.remove(out)
    r = run(['pretrain-data', 'tokenize', '--tokenizer', path, *options, '-o', out, source])
    if r.returncode:
        raise RuntimeError(last(r))
    with h5py.File(out, 'r') as f:
        return f['tokens'][...].tolist()


def peek(s):
    return run(['pretrain-data', 'peek', '--tokens', 1000, s.path('out.h5')]).stdout


def same(got, want):
    return '' if got == want else f'{got}, expected {want}'


def b39(tap, s):
    r = s.go('b39', args=['--check'], steps=1000000, batch=4096, seq=4096, data={'train': token_file(s.path('b39.h5'), range(4097), vocab=8192)},
             model={'vocab_size': 8192})
    tap.ok('4097 tokens, 1 samples; 1000000 steps are 4096000000.00 epochs' in r.stdout.replace(',097', '097')
           and '16,777,216 tokens' in r.stdout, 'B39: a million steps of 4096 sequences are counted in 64 bits')


def b41(tap, s):
    for name, size, extra in (('65536 and an added token', 65536, [added(65536, '<end>', special=True)]), ('70000', 70000, [])):
        def body():
            words = [f'w{i}' for i in range(size - 256)]
            path = tokenizer(s, 'wide.json', {**vocabulary(words), 'ignore_merges': True},
                             extra, pre_tokenizer=dict(type='Sequence', pretokenizers=[
                                 dict(type='Split', pattern=dict(String=' '), behavior='Removed', invert=False),
                                 {**LEVEL, 'use_regex': False}]))
            largest = [65535, 65536] if extra else [65535, 65536, 69999]
            text = ' '.join('<end>' if extra and i == 65536 else words[i - 256] for i in largest)
            ids = tokenize(s, path, [text], '--eod', 'w0')
            why = same(ids, [*largest, 256])
            if why or text.replace(' ', '') not in peek(s).replace(' ', ''):
                return why or peek(s)
            shutil.move(s.path('out.h5'), s.path('b41.h5'))
            return ''

        attempt(tap, f'B41: a vocabulary of {name}: ids above 65535 stay what they are', body)
        data = s.path('b41.h5')
        r = s.go('b41', check=False, seq=2, batch=1, model={'vocab_size': 65536}, data={'train': data})
        tap.ok(r.returncode in (2, 3) and 'b41.h5' in r.stderr and '655' in r.stderr,
               f'B41: a model of 65536 rows is refused: {last(r)[:200]}')


def b47(tap, s):
    a, b = ord('a'), ord('b')
    for front, back in ((0, 0), (1, 0), (1, 1), (0, 1)):
        path = tokenizer(s, 'b47.json', vocabulary(), ENDS, template(front, back) if front + back else None)
        for options in ((), ('--eod', '</s>')):
            want = [i for c in (a, b) for i in [257] * front + [c, 256]]
            attempt(tap, f'B47: template with {front} before, {back} behind, {" ".join(options) or "no option"}: each once',
                    lambda: same(tokenize(s, path, ['a', 'b'], *options), want))

    def none():
        path = tokenizer(s, 'none.json', vocabulary(['x']), [])
        r = run(['pretrain-data', 'tokenize', '--tokenizer', path, '-o', s.path('none.h5'), s.path('in.jsonl')])
        return '' if r.returncode == 2 and '--eod' in r.stderr and not os.path.exists(s.path('none.h5')) else last(r)

    attempt(tap, 'B47: a tokenizer without an end token is refused, with the option that names one', none)


def b51(tap, s):
    """A split by fraction is exact, disjoint and complete, and none of its sides is empty in silence."""
    import h5py
    path = tokenizer(s, 'split.json', vocabulary())
    train, validation = s.path('split-train.h5'), s.path('split-validation.h5')

    def split(fraction, n):
        with open(s.path('split.jsonl'), 'w') as f:
            f.write(''.join(json.dumps({'text': f'document {i}.'}) + '\n' for i in range(n)))
        for old in (train, validation):
            if os.path.exists(old):
                os.remove(old)
        return run(['pretrain-data', 'tokenize', '--tokenizer', path, '--eod', ALPHABET[10], '--validation-fraction', fraction,
                    '--validation-output', validation, '-o', train, s.path('split.jsonl')])

    def documents(name):
        with h5py.File(name, 'r') as f:
            return bytes(f['tokens'][...].tolist()).decode().splitlines()

    for fraction, n, held in (('0.01', 100, 1), ('0.01', 199, 1), ('0.29', 100, 29), ('0.1', 10, 1), ('0.5', 3, 1),
                              ('0.99', 100, 99)):
        r = split(fraction, n)
        if r.returncode:
            tap.ok(False, f'B51: {fraction} of {n}: {last(r)}')
            continue
        a, b = documents(train), documents(validation)
        good = len(b) == held and sorted(a + b) == sorted(f'document {i}.' for i in range(n))
        tap.ok(good, f'B51: {fraction} of {n} documents are {len(b)}, and {len(a)} are left, each of them once')
    for fraction, n in (('0.01', 10), ('0', 0), ('1', 0)):  # 0: before it reads
        r = split(fraction, n)
        tap.ok(r.returncode == 2 and 'validation-fraction' in r.stderr and not os.path.exists(train)
               and not os.path.exists(validation), f'B51: {fraction} of {n} is refused: {last(r)}')


def b53(tap, s):
    for flag, want in ((True, [258, 259]), (False, [257, 99, 0xc3, 0xbc, 98])):
        model = {**vocabulary(['</s>', 'ab', 'abc', 'üb'], [('a', 'b')]), 'ignore_merges': flag}
        path = tokenizer(s, 'b53.json', model, [added(256, '</s>', special=True)], pre_tokenizer=dict(
            type='Sequence', pretokenizers=[dict(type='Split', pattern=dict(String='ü'), behavior='MergedWithNext', invert=False),
                                            {**LEVEL, 'use_regex': False}]))
        attempt(tap, f'B53: ignore_merges {flag}: a word of the vocabulary is {"taken whole" if flag else "made by merges"}',
                lambda: same(tokenize(s, path, ['abcüb']), want + [256]))


def b55(tap, s):
    flags = [added(256, '</s>', special=True), added(257, '<think>'), added(258, '<|x|>', lstrip=True),
             added(259, 'word', single_word=True), added(260, '<a>'), added(261, '<a><b>'), added(262, '<Ö>')]
    path = tokenizer(s, 'b55.json', vocabulary(), flags)
    text = lambda t: list(t.encode())
    cases = {'<think>a<think>': [257, 97, 257], 'a<think><think>b': [97, 257, 257, 98], 'x  <|x|> y': [120, 258, *text(' y')],
             'password word, words': [*text('password '), 259, *text(', words')], '<a><b><a>': [261, 260],
             '<Ö>Ö<Ö>': [262, *text('Ö'), 262], 'x<Ö>y': [120, 262, 121], 'word': [259]}
    for t, ids in cases.items():
        attempt(tap, f'B55: `{t}`', lambda: same(tokenize(s, path, [t]), ids + [256])
                or ('' if t.replace('  <|x|>', '<|x|>') in peek(s) else peek(s)))
    attempt(tap, 'B55: names of special tokens are these tokens', lambda: same(tokenize(s, path, ['a</s>b']), [97, 256, 98, 256]))
    attempt(tap, 'B55: or text, when asked',
            lambda: same(tokenize(s, path, ['a</s>b<think>'], '--specials-as-text'), [97, *text('</s>'), 98, 257, 256]))


def b57(tap, s):
    path = tokenizer(s, 'b57.json', vocabulary(), [ENDS[0]])
    for t in ('ab\0cd', '\0', 'a\0', '\0\0b'):
        attempt(tap, f'B57: {t!r} keeps its NUL', lambda: same(tokenize(s, path, [t]), [*t.encode(), 256]))

    def raw():
        import h5py
        with open(s.path('raw.txt'), 'wb') as f:
            f.write(b'ab\0cd\0' * 4)
        r = run(['pretrain-data', 'tokenize', '--tokenizer', path, '-o', s.path('raw.h5'), s.path('raw.txt')])
        with h5py.File(s.path('raw.h5'), 'r') as f:
            return same(f['tokens'][...].tolist(), [*b'ab\0cd\0' * 4, 256]) or ('' if r.returncode == 0 else last(r))

    attempt(tap, 'B57: and so does a text file', raw)

    def prompt():
        run(['pretrain-data', 'tokenize', '--tokenizer', path, '-o', s.path('b57.h5'), s.path('raw.txt')])
        s.go('b57', steps=1, seq=16, batch=1, model={'vocab_size': 0}, data={'train': s.path('b57.h5')}, checkpoint={'interval': 1})
        with open(s.path('prompts.jsonl'), 'w') as f:
            f.write(json.dumps({'prompt': 'ab\0cd'}) + '\n' + json.dumps({'ids': [*b'ab\0cd']}) + '\n')
        r = run(['pretrain-infer', 'generate', '--max-new-tokens', 3, '-o', s.path('answers.jsonl'), s.path('b57', 'step_00000001'),
                 s.path('prompts.jsonl')])
        if r.returncode:
            return last(r)
        rows = [json.loads(line) for line in open(s.path('answers.jsonl'))]
        return '' if rows[0]['prompt_tokens'] == 5 and rows[0]['ids'] == rows[1]['ids'] else str(rows)

    attempt(tap, 'B57: and a prompt', prompt)


def b59(tap, s):
    """A JSON line of 200 MB, of half of it, and runs without a break."""
    import random
    with open(s.path('words.txt'), 'w') as f:
        r = random.Random(1)
        f.write(' '.join(''.join(r.choice('etaoinshrdlu') for _ in range(r.randrange(2, 9))) for _ in range(20000)))
    path = s.path('b59.json')
    made = run(['pretrain-data', 'tokenizer', 'train', '--vocab-size', 2000, '-o', path, s.path('words.txt')])
    if made.returncode:
        raise RuntimeError(last(made))
    words = open(s.path('words.txt')).read()
    took, counts = [], []
    for size in (100000000, 200000000):
        with open(s.path('long.jsonl'), 'w') as f:
            f.write('{"text": "')
            for _ in range(size // len(words)):
                f.write(words)
            f.write('"}\n')
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        r = run(['pretrain-data', 'tokenize', '--tokenizer', path, '-o', s.path('long.h5'), s.path('long.jsonl')])
        took.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        if r.returncode:
            return tap.ok(False, f'B59: {last(r)}')
        counts.append(int(r.stdout.split(' tokens')[0].split()[-1].replace(',', '')))
        os.remove(s.path('long.h5'))
    os.remove(s.path('long.jsonl'))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    tap.ok(took[1] < 3 * took[0], f'B59: a line of 200 MB: {took[1]:.1f} s of processor time, of half of it {took[0]:.1f} s')
    tap.ok(abs(counts[1] - 2 * counts[0]) <= 2, f'B59: and twice as many tokens: {counts}')
    tap.ok(most < 5 * size, f'B59: in {most >> 20} MiB')  # the line, its text, four bytes an id


def main():
    tap, s = Tap(), Scene('text')
    for part in (b39, b41, b47, b51, b53, b55, b57, b59):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
