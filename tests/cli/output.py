"""What a run writes: metrics.jsonl, log.txt, the screen, input.nml, RUN_COMPLETE; the same in all locales and below odd paths."""

import os, re, shutil, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

KEYS = [
    'step',
    'loss',
    'grad_norm',
    'learning_rate',
    'valid_tokens',
    'tokens',
    'samples',
    'step_seconds',
    'tokens_per_second',
    'model_flops_per_second',
    'peak_fraction',
    'attempt',
]
TIMES = {'step_seconds', 'tokens_per_second', 'model_flops_per_second', 'peak_fraction', 'bubble', 'data_seconds'}


def lines(path):
    with open(path, encoding='utf-8') as f:
        return f.read().splitlines()


def numbers(s, name):
    """metrics.jsonl without what depends on the clock, as text"""
    out = []
    for line in lines(s.path(name, 'metrics.jsonl')):
        out.append({k: v for k, v in json.loads(line, parse_float=str).items() if k not in TIMES})
    return out


def metrics_file(tap, s):
    kw = dict(steps=3, data={'validation': s.data}, eval={'interval': 2, 'batches': 1}, parallel={'dp': 2})
    s.go('run', **kw)
    m = [json.loads(x) for x in lines(s.path('run/metrics.jsonl'))]
    tap.ok(all(set(KEYS) <= set(x) for x in m), 'every line has the keys of the interface')
    tap.ok(
        set().union(*m) - set(KEYS) <= {'validation_loss', 'bubble', 'data_seconds'},
        f'and no more: {set().union(*m) - set(KEYS)}',
    )
    tap.ok(
        [x['step'] for x in m] == [1, 2, 3]
        and [x['samples'] for x in m] == [4, 8, 12]
        and [x['tokens'] for x in m] == [64, 128, 192]
        and all(x['valid_tokens'] == 64 and x['attempt'] == 0 for x in m),
        'counts',
    )
    tap.ok(
        ['validation_loss' in x for x in m] == [False, True, True],
        'validation_loss at the interval and at the end',
    )
    text = '\n'.join(lines(s.path('run/metrics.jsonl')))
    floats = re.findall(r'"(?:loss|grad_norm|validation_loss)": ([0-9.e+-]+)', text)
    tap.ok(
        len(floats) == 8
        and all('%.17g' % float(x) == x for x in floats)
        and max(len(x) for x in floats) >= 17,
        '17 digits',
    )
    tap.ok(
        all(abs(x['tokens_per_second'] * x['step_seconds'] / 64 - 1) < 1e-9 for x in m),
        'tokens per second are tokens / seconds',
    )
    with open(s.path('run/metrics.jsonl'), 'a') as f:
        f.write('{"step": 4, "lo')  # killed while it wrote
    s.go('run', **{**kw, 'steps': 4})
    broken = [x for x in lines(s.path('run/metrics.jsonl')) if not x.endswith('}')]
    tap.ok(
        broken == ['{"step": 4, "lo'] and json.loads(lines(s.path('run/metrics.jsonl'))[-1])['attempt'] == 1,
        'a line cut short is ended, the next has attempt 1',
    )


def no_label(tap, s):
    data = token_file(s.path('dots.h5'), random_ids(1200), documents=list(range(65)) + [70])
    s.go(
        'skip',
        steps=2,
        data={'train': data, 'document_mask': True, 'shuffle': False},
        checkpoint={'interval': 1, 'keep_last': 9},
    )
    m = [json.loads(x) for x in lines(s.path('skip/metrics.jsonl'))]
    tap.ok(
        m[0].get('skipped') is True and m[0]['loss'] is None and m[0]['valid_tokens'] == 0,
        'a step without a counted label is skipped',
    )
    tap.ok('skipped' not in m[1] and m[1]['samples'] == 8, 'the next is not, and samples went on')
    one, two = whole(s.path('skip/step_00000001')), whole(s.path('skip/step_00000002'))
    tap.ok(not any(np.any(v) for v in one['exp_avg'].values()), 'no moment changed')
    import h5py

    t = []
    for k in (1, 2):
        with h5py.File(s.path(f'skip/step_0000000{k}/index.h5'), 'r') as f:
            t.append(int(f.attrs['adam_t']))
    tap.ok(t == [0, 1] and np.any(two['exp_avg']['lm_head.weight']), "Adam's t counts updates")


def screen(tap, s):
    r = s.go('screen', steps=2, parallel={'dp': 2, 'pp': 2})
    out = r.stdout.splitlines()
    first = [i for i, x in enumerate(out) if x.split()[:1] == ['1']]
    tap.ok(len(first) == 1 and first[0] < 24, f'{first[0] if first else "?"} lines before the first step')
    for word, pattern in [
        ('grid', r'^grid +4 ranks on 1 node = pp 2 x dp 2 x tp 1, 1 thread each'),
        ('stages', r'^stages .*0: embedding \+ 1 block .*1: 1 block \+ head .*1f1b, bubble \d'),
        (
            'memory',
            r'^memory .*weights [\d.]+, gradients [\d.]+, optimiser [\d.]+, activations [\d.]+, scratch [\d.]+ = [\d.]+ MiB',
        ),
        ('batch', r'^batch +4 sequences of 16 = 64 tokens: 2 replicas x 2 micro-batches of 1'),
        ('model', r'vocabulary 256: 119\.1 k parameters'),
        ('data', r'1,200 tokens, 74 samples; 2 steps are 0\.11 epochs'),
    ]:
        tap.ok(sum(bool(re.search(pattern, x)) for x in out) == 1, f'the screen shows {word}, once')
    tap.ok(r.stderr == '', 'nothing on stderr')
    log = open(s.path('screen/log.txt'), 'rb').read()
    tap.ok(not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]', log), 'log.txt has no control characters')
    tap.ok(log.decode() == r.stdout, 'log.txt holds what the screen showed')
    tap.ok(not re.search('[\x00-\x09\x0b-\x1f\x7f]', r.stdout), 'without a terminal there is no live line')
    few = s.go('few', steps=5, log={'interval': 3})
    shown = [x.split()[0] for x in few.stdout.splitlines() if x.split()[:1] and x.split()[0].isdigit()]
    tap.ok(
        shown == ['3', '5'] and len(s.losses('few')) == 5, 'log.interval thins the screen, not the metrics'
    )
    tap.ok(open(s.path('screen/RUN_COMPLETE')).read() == 'step 2\n', 'RUN_COMPLETE says the step')


def terminal(tap, s):
    """A pseudo-terminal: a live line there, none in log.txt."""
    import pty

    path = s.deck('tty', steps=3)
    try:
        master, slave = pty.openpty()
    except OSError as x:
        return tap.skip('a terminal gets a live line', str(x))
    p = subprocess.Popen(
        [os.path.join(BIN, 'pretrain'), path], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave
    )
    os.close(slave)
    out = b''
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(master)
    tap.ok(p.wait() == 0 and b'step 2 of 3' in out and b'\r\x1b[K' in out, 'a terminal gets a live line')
    tap.ok(
        b'\x1b' not in open(s.path('tty/log.txt'), 'rb').read()
        and 'step 2 of 3' not in open(s.path('tty/log.txt')).read(),
        'log.txt does not',
    )


def inputs(tap, s):
    s.go('nml', args=['--set', 'train.train_steps=3', '--set=optim.learning_rate=2e-3'])
    first = open(s.path('nml/input.nml')).read()
    tap.ok(
        'train_steps = 3' in first and 'learning_rate = 2e-3' in first and len(s.losses('nml')) == 3,
        '--set is in the resolved input',
    )
    s.go('nml', steps=4)
    now = open(s.path('nml/input.nml')).read()
    tap.ok(
        open(s.path('nml/input.1.nml')).read() == first and 'train_steps = 4' in now,
        'the older input becomes input.1.nml',
    )
    s.go('nml', steps=5)
    tap.ok(
        {'input.nml', 'input.1.nml', 'input.2.nml'} <= set(s.files('nml'))
        and open(s.path('nml/input.2.nml')).read() == now,
        'then input.2.nml',
    )
    tap.ok([x['attempt'] for x in numbers(s, 'nml')] == [0, 0, 0, 1, 2], 'attempts 0, 1, 2')
    copy = s.path('copy.nml')
    shutil.copy(s.path('nml/input.nml'), copy)
    r = run(['pretrain', copy])
    tap.ok(
        r.returncode == 0 and 'nothing to do' in r.stdout and r.stderr == '',
        'the resolved input is a deck of the same run',
    )
    for name in ('log.txt', 'metrics.jsonl', 'input.nml'):
        os.makedirs(s.path('odd-' + name, name, 'x'))
        attempt(
            tap,
            f'{name} is a folder',
            lambda: expect(
                s.go('odd-' + name, ranks=2, check=False),
                *((3, name) if name != 'input.nml' else (0,)),
                voices=name != 'input.nml',
            ),
        )


def locales(tap, s):
    s.go('locale-C', steps=3, env={'LC_ALL': 'C'})
    truth, out = numbers(s, 'locale-C'), re.sub('locale-C', '@', open(s.path('locale-C/input.nml')).read())
    have = subprocess.run(['locale', '-a'], capture_output=True, text=True).stdout.split()
    made = s.path('locales/de_DE.UTF-8')
    os.makedirs(s.path('locales'))
    own = subprocess.run(
        ['localedef', '-i', 'de_DE', '-f', 'UTF-8', made], capture_output=True
    ).returncode in (0, 1) and os.path.isdir(made)
    print(f'# German numbers: {"de_DE.utf8" in have or own}')
    for name in ('POSIX', 'de_DE.UTF-8', 'tr_TR.UTF-8', 'nonsense', ''):
        env = {
            'LC_ALL': name,
            'LANG': name,
            'LC_NUMERIC': name,
            **({'LOCPATH': s.path('locales')} if own else {}),
        }
        s.go('locale-' + name, steps=3, env=env)
        same = (
            numbers(s, 'locale-' + name) == truth
            and re.sub('locale-' + name + "'", "@'", open(s.path('locale-' + name, 'input.nml')).read())
            == out
        )
        m = s.path('locale-' + name)
        r = run(['pretrain-merge', newest(m), '-o', m + '-hf'], env=env)
        if name == 'POSIX':
            first = {f: open(os.path.join(m + '-hf', f), 'rb').read() for f in sorted(os.listdir(m + '-hf'))}
        again = {f: open(os.path.join(m + '-hf', f), 'rb').read() for f in sorted(os.listdir(m + '-hf'))}
        tap.ok(
            same and r.returncode == 0 and again == first, f"B75: LC_ALL='{name}': same numbers, same export"
        )


def paths(tap, s):
    truth = None
    names = [
        'a b',
        "it's",
        'x=1,y',
        'uni-äö',
        '~',
        '-dash',
        'semi;colon',
        'per%cent%s',
        'tab\there',
        '"double"',
        'a' * 200,
    ]
    for name in names:

        def body():
            nonlocal truth
            base = s.path('paths', name)
            os.makedirs(base)
            data, hf = os.path.join(base, 't.h5'), os.path.join(base, 'hf')
            shutil.copy(s.data, data)
            hf_folder(hf)
            kw = dict(data={'train': data}, model={'init_from': hf}, ranks=2)
            r = s.go('odd', directory=os.path.join(base, 'run'), **kw)
            m = [x['loss'] for x in metrics(os.path.join(base, 'run'))]
            truth = truth or m
            if m != truth or r.stderr:
                return f'{m} {r.stderr}'
            step = os.path.join(base, 'run', 'step_00000002')
            s.go('odd2', directory=os.path.join(base, 'next'), run={'resume': step}, steps=3, **kw)
            q = run(['pretrain-merge', step, '-o', os.path.join(base, 'out')])
            if q.returncode:
                return last(q)
            want = {'t.h5', 'hf', 'run', 'next', 'out'}
            return '' if set(os.listdir(base)) == want else f'{os.listdir(base)}'

        attempt(tap, f'B77: below {name[:20]!r}', body)
    tap.ok(sorted(os.listdir(s.path('paths'))) == sorted(names), 'B77: nothing in odd places')

    os.makedirs(s.path('cwd'))
    os.symlink(s.path('cwd'), s.path('link'))
    shutil.copy(s.data, s.path('cwd/t.h5'))
    for name in ('runs/x', './runs/y', 'runs/z/', 'runs//w', '../cwd/runs/v'):
        attempt(
            tap,
            f'B77: relative, from where it is started: {name}',
            lambda: s.go(
                'relative', ranks=2, directory=name, data={'train': 't.h5'}, cwd=s.path('cwd')
            ).stderr
            or ('' if os.path.exists(s.path('cwd', name, 'step_00000002/MANIFEST.json')) else 'not there'),
        )
    attempt(
        tap,
        'B77: a symbolic link',
        lambda: s.go('linked', directory=s.path('link/runs/u')).stderr
        or ('' if os.path.exists(s.path('cwd/runs/u/RUN_COMPLETE')) else 'not there'),
    )
    tap.ok(sorted(os.listdir(s.path('cwd/runs'))) == list('uvwxyz'), 'each in its place')
    for n in (300, 5000):
        long = s.path('cwd', 'b' * n) if n == 300 else s.path('cwd', '/'.join(['c' * 100] * 50))
        attempt(
            tap,
            f'B77: a path that is too long ({n})',
            lambda: long_path(s.go('long', ranks=2, check=False, directory=long)),
        )


def long_path(r):
    if r.returncode not in (2, 3) or r.stderr.count('pretrain: ') != 1:
        return f'exit {r.returncode}: {r.stderr[-300:]}'


def main():
    tap, s = Tap(), Scene('output')
    for part in (metrics_file, no_label, screen, terminal, inputs, locales, paths):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
