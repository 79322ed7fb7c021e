"""What the tests of `pretrain-data tokenize` share: made-up texts, and a folder in which it runs."""

import filecmp, gzip, os, random, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'golden'))
from harness import *

END = 256  # of `bytes`
BATCH = 1 << 18
WORDS = ['a', 'the', 'Wort', 'größer', '中文字', '🙂', "it's", 'x1', '2024', '...', '()', 'naïve', 'end.', '\u3000', 'ß\n', '\r\n', '\t']


def prose(seed, n, breaks=(' ', ' ', ' ', '\n', '  ', '\n\n')):
    r = random.Random(seed)
    out, size = [], 0
    while size < n:
        w = r.choice(WORDS) if r.random() < 0.4 else ''.join(r.choices('etaoinshrdlu', k=r.randint(1, 9)))
        out.append(w + r.choice(breaks))
        size += len(out[-1].encode())
    return ''.join(out)


class Case:
    def __init__(self, name='tokenize'):
        self.tap, self.dir = Tap(), work(name)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return path

    def lines(self, name, texts, **more):
        return self.write(name, ''.join(json.dumps({'text': t, **more}, ensure_ascii=i % 2 == 0) + '\n' for i, t in enumerate(texts)))

    def go(self, *inputs, n=0, out='out.h5', tokenizer='bytes', stdin=None, code=0, args=()):
        full = ['tokenize', '--tokenizer', tokenizer, '-o', self.path(out), *args, *inputs]
        command = (MPIRUN + ['-np', str(n)] if n else []) + [os.path.join(BIN, 'pretrain-data')] + [str(a) for a in full]
        r = subprocess.run(command, capture_output=True, input=stdin, timeout=300)
        r.stdout, r.stderr = r.stdout.decode(), r.stderr.decode()
        if r.returncode != code:
            print(f'# exit {r.returncode}, expected {code}: {" ".join(map(str, full))}\n# ' + (r.stdout + r.stderr).replace('\n', '\n# '))
        return r

    def ids(self, out='out.h5'):
        r = run(['pretrain-data', 'convert', '--to', 'raw', '-o', self.path('raw.bin'), self.path(out)])
        return np.fromfile(self.path('raw.bin'), '<u2') if r.returncode == 0 else np.zeros(0, '<u2')

    def documents(self, out='out.h5'):
        """Of `bytes`: their bytes."""
        ids = self.ids(out)
        ends = np.flatnonzero(ids == END)
        return [ids[a:b].astype(np.uint8).tobytes() for a, b in zip([0, *(ends[:-1] + 1)], ends)]

    def same(self, a, b):
        return os.path.exists(self.path(a)) and os.path.exists(self.path(b)) and filecmp.cmp(self.path(a), self.path(b), shallow=False)

    def refused(self, name, code, parts, *inputs, **how):
        r = self.go(*inputs, out='new.h5', code=code, **how)
        lines = r.stderr.strip().splitlines()
        if how.get('n'):
            lines = [line for line in lines if line.startswith('pretrain-data')]  # launchers have a word to say, too
        left = [f for f in os.listdir(self.dir) if f.startswith('new.h5')]
        good = r.returncode == code and len(lines) == 1 and all(p in r.stderr for p in parts) and not left
        if not good:
            print('#', r.returncode, lines, left)
        self.tap.ok(good, name)
