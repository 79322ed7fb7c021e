"""pretrain-data tokenize goes on after a kill, a full disk, a bad line; or says why it does not. What comes out is always the
file of an undisturbed run."""

import resource, shutil, signal, time

from tokenize_case import *


class Resume(Case):
    def __init__(self):
        super().__init__('resume')
        r = random.Random(1)
        texts = [prose(i % 40, r.choice([20, 2000, 30000])) for i in range(500)]
        self.inputs = [
            self.lines('in/a.jsonl', texts[:250]),
            self.write('in/b.txt', prose(77, 6 * BATCH)),
            self.write('in/c.jsonl.gz', gzip.compress(open(self.lines('c.jsonl', texts[250:]), 'rb').read(), 1)),
            self.write('in/d.txt', prose(77, 6 * BATCH)),
            self.lines('in/e.jsonl', texts[:100]),
        ]
        self.more = ['--drop-duplicates', '--validation-fraction', '0.2', '--validation-output', self.path('v.h5')]
        self.go(*self.inputs, args=self.more)
        os.rename(self.path('out.h5'), self.path('true.h5')), os.rename(self.path('v.h5'), self.path('true_v.h5'))

    def command(self, *args, inputs=None, seconds=0.01):
        return [os.path.join(BIN, 'pretrain-data'), 'tokenize', '--tokenizer', 'bytes', '-o', self.path('out.h5'), '--threads', '1',
                '--journal-seconds', str(seconds), *map(str, args or self.more), *(inputs or self.inputs)]

    def left(self):
        return sorted(f for f in os.listdir(self.dir) if f.startswith(('out.h5', 'v.h5')))

    def clear(self):
        for f in self.left():
            os.remove(self.path(f))

    def journal(self):
        try:
            with open(self.path('out.h5.journal')) as f:
                return json.load(f)
        except (OSError, ValueError):
            return None

    def kill_when(self, due, args=()):
        """SIGKILL as soon as the journal is due, at the latest when it ends. 1: it was killed."""
        p = subprocess.Popen(self.command(*args, seconds=0), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while p.poll() is None:
            j = self.journal()
            if j and due(j['now']):
                p.kill()
                break
            time.sleep(0.0005)
        p.wait()
        p.stderr.close()
        return p.returncode == -signal.SIGKILL

    def again(self, *args, code=0, inputs=None, limit=None):
        small = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
        r = subprocess.run(self.command(*args, inputs=inputs), capture_output=True, text=True, preexec_fn=small, timeout=120)
        if r.returncode != code:
            print('#', r.returncode, r.stdout, r.stderr)
        return r

    def right(self):
        if self.left() != ['out.h5', 'v.h5']:
            print('# left:', self.left())
        return c_same(self) and self.left() == ['out.h5', 'v.h5']


def c_same(c):
    return c.same('true.h5', 'out.h5') and c.same('true_v.h5', 'v.h5')


def test_kills(c):
    moments = {
        'in the first input': lambda n: n[0] == 0 and n[1] > 0,
        'in a long text': lambda n: n[0] == 1 and n[1] > 3 * BATCH,
        'in a packed file': lambda n: n[0] == 2 and n[1] > BATCH,
        'in a text that is dropped': lambda n: n[0] == 3 and n[1] > BATCH,
        'in the last input': lambda n: n[0] == 4,
    }
    for name, due in moments.items():
        killed = in_middle(c, due)
        c.tap.ok(killed and 'out.h5' not in c.left() and c.journal(), f'killed {name}')
        r = c.again()
        c.tap.ok('going on from ' + c.path('out.h5.journal') in r.stdout and c.right(), 'goes on to the same files, nothing is left')
    c.clear()
    kills = 0
    for k in range(1, 60):
        first = (c.journal() or {'now': [0, -1]})['now'][:2]
        if not c.kill_when(lambda n: n[:2] > first and kills < 12):
            break
        kills += 1
    c.tap.ok(kills == 12 and c.right(), f'killed {kills} times in one work: the same files')
    c.clear()
    r, kills = random.Random(5), 0
    for k in range(20):
        p = subprocess.Popen(c.command(), stdout=subprocess.DEVNULL)
        try:
            p.wait(r.random() * 0.3)
            break
        except subprocess.TimeoutExpired:
            p.kill(), p.wait()
            kills += 1
    if c.left() != ['out.h5', 'v.h5']:
        c.again()
    c.tap.ok(c.right(), f'killed at {kills} moments by chance: the same files')


def in_middle(c, where=lambda n: n[0] == 2 and n[1] > 0):
    """A moment can be missed."""
    for _ in range(10):
        c.clear()
        if c.kill_when(where):
            return True
    return False


def touch(path):
    s = os.stat(path)
    os.utime(path, ns=(s.st_atime_ns, s.st_mtime_ns + 1000000))


CALLS = ['write', 'pwrite64', 'ftruncate', 'fsync', 'rename', 'unlink']


def test_calls(c):
    """SIGKILL inside each call that changes a file, one after the other; in CI all of the finish and a part of those before."""
    inputs = c.inputs[:1]
    c.clear()
    c.go(*inputs, args=c.more)
    for name in 'out.h5', 'v.h5':
        os.replace(c.path(name), c.path('calls_' + name))

    def killed(*options):
        c.clear()
        return subprocess.run(['strace', '-f', '-qq', *options, *c.command(inputs=inputs)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    if not shutil.which('strace') or subprocess.run(['strace', '-o', '/dev/null', 'true'], stderr=subprocess.DEVNULL).returncode:
        return c.tap.skip('killed at each call', 'no strace that may look at a process')
    if killed('-o', c.path('trace'), '-e', 'trace=' + ','.join(CALLS)):
        return c.tap.ok(False, 'nobody kills it: it ends well')
    with open(c.path('trace')) as f:
        names = [line.split(None, 1)[1].split('(')[0] for line in f]
    wrong, tried = [], 0
    for i, name in enumerate(names):
        if not SOAK and i < len(names) - 40 and i % 8:
            continue
        k = names[: i + 1].count(name)
        killed('-o', '/dev/null', '-e', 'trace=' + name, '-e', f'inject={name}:signal=KILL:when={k}')
        c.again(inputs=inputs)
        tried += 1
        if c.left() != ['out.h5', 'v.h5'] or not all(c.same('calls_' + name, name) for name in c.left()):
            wrong.append(f'{name} {k}')
    for name in wrong:
        print('# other files:', name)
    c.tap.ok(tried > 30 and not wrong, f'killed in {tried} of {len(names)} calls that change a file: the same files')


def test_changes(c):
    in_middle(c)
    touch(c.inputs[2])
    r = c.again()
    c.tap.ok('c.jsonl.gz has changed: going on from its beginning' in r.stdout and 'going on from' in r.stdout and c.right(), 'the present input changed')
    in_middle(c)
    touch(c.inputs[0])
    r = c.again()
    c.tap.ok('starting over' in r.stdout and 'inputs that were read have changed' in r.stdout and c.right(), 'an input that was read changed')
    in_middle(c)
    r = c.again(*c.more, '--field', 'text', inputs=c.inputs[1:])
    c.tap.ok('starting over' in r.stdout and 'inputs that were read' in r.stdout, 'an input is gone')
    in_middle(c)
    r = c.again(*c.more[1:])
    c.tap.ok('starting over' in r.stdout and 'the options were --field text' in r.stdout and '--drop-duplicates' in r.stdout, 'an option changed')
    in_middle(c)
    r = c.again(*c.more, '--invalid-utf8', 'replace')
    c.tap.ok('going on from' in r.stdout and c.right(), 'from refuse to replace it goes on')
    in_middle(c)
    with open(c.path('out.h5.journal'), 'w') as f:
        f.write('{"format":')
    r = c.again()
    c.tap.ok('starting over' in r.stdout and 'not a journal' in r.stdout and c.right(), 'a journal that is none')
    for part in ['out.h5.part', 'v.h5.part-documents', 'out.h5.part-hashes']:
        in_middle(c)
        with open(c.path(part), 'r+b') as f:
            f.truncate(8)
        r = c.again()
        c.tap.ok('starting over' in r.stdout and f'{part}: it is shorter than it was' in r.stdout and c.right(), f'{part} is cut')


def test_bad_lines(c):
    good = open(c.inputs[4], 'rb').read()
    c.clear()
    c.write('in/e.jsonl', good + b'oops\n')
    r = c.again(code=3)
    lines = r.stderr.strip().splitlines()
    c.tap.ok(len(lines) == 1 and 'e.jsonl:101: not JSON' in lines[0] and 'goes on from' in lines[0], 'a bad line in the last input: one message')
    c.write('in/e.jsonl', good)
    r = c.again()
    c.tap.ok('e.jsonl has changed: going on' in r.stdout and c.right(), 'the line is mended: it goes on')
    c.clear()
    r = c.go('-', stdin=good, args=['--format', 'jsonl', '--journal-seconds', '0'])
    c.tap.ok('cannot be read again' in r.stdout and c.left() == ['out.h5'], 'standard input: no journal')


def test_full_disk(c):
    size = os.path.getsize(c.path('true.h5'))
    for limit in [size // 2, size - (1 << 20), size - 4096]:
        c.clear()
        r = c.again(code=3, limit=limit)
        lines = r.stderr.strip().splitlines()
        c.tap.ok(len(lines) == 1 and 'ulimit -f' in lines[0] and 'goes on from' in lines[0], f'no room behind {limit} bytes: one message')
        r = c.again()
        c.tap.ok('going on from' in r.stdout and c.right(), 'with room it goes on')


def test_two(c):
    c.clear()
    p = subprocess.Popen(c.command('--format', 'text', inputs=['-']), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while not os.path.exists(c.path('out.h5.part')) and p.poll() is None:
        time.sleep(0.001)
    time.sleep(0.05)
    r = c.again(code=3)
    c.tap.ok('out.h5.part: another process is writing it' in r.stderr, 'two processes, one output: the second is refused')
    p.communicate(b'abc')
    c.tap.ok(p.returncode == 0 and c.documents() == [b'abc'], 'and the first is not disturbed')


def main():
    c = Resume()
    for t in [test_kills, test_calls, test_changes, test_bad_lines, test_full_disk, test_two]:
        t(c)
    c.tap.done()


if __name__ == '__main__':
    main()
