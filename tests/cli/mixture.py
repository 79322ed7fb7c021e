"""Sources, stages and validation sets in a run: the layout law, the restart law across a stage, what may change on resume."""

import os, shutil, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

EMBED = 'model.embed_tokens.weight'
KEEP = {'interval': 1, 'keep_last': 99}


class Mixture(Scene):
    """Sources a, b, c hold ids of their own: 0.., 80.., 160..; weights of two stages, which begin at steps 1 and 4."""

    def __init__(self):
        super().__init__('mixture')
        r = np.random.default_rng(3)
        for i, name in enumerate('abc'):
            token_file(self.path(name + '.h5'), r.integers(80 * i, 80 * i + 80, 700 + 100 * i))

    def source(self, name, **keys):
        return ('source', {'name': name, 'files': self.path(keys.pop('file', name) + '.h5'), **keys})

    def groups(self, first=(6, 3, 0), then=(1, 2, 3), start=4, length=32):
        return [self.source(n, weight=w) for n, w in zip('abc', first)] + [
            ('stage', {}),
            ('stage', {'start_step': start, 'weights': list(then), 'sequence_length': length}),
        ]

    def deck(self, name, groups=(), **kw):
        kw['data'] = {'train': None if groups and groups[0][0] == 'source' else self.data, **kw.get('data', {})}
        path = super().deck(name, **kw)
        with open(path, 'a') as f:
            for group, keys in groups:
                f.write(f'&{group}\n' + ''.join(f'  {k} = {value(v)}\n' for k, v in keys.items()) + '/\n')
        return path

    def digest(self, *names):
        r = run(['pretrain-ckpt', 'digest', self.path(*names)])
        return r.stdout.split()[0] if r.returncode == 0 else last(r)


def test_law(tap, s):
    kw = dict(steps=6, groups=s.groups(), checkpoint=KEEP, train={'micro_batch_size': 2})
    r = s.go('one', **kw)
    for text in (
        'data    a             66.6672 %: ',
        'data    b             33.3328 %: ',
        'data    c              0.0000 %: ',
        'stage   from step 4: sequences of 32, a 16.6672 %, b 33.3328 %, c 50.0000 %',
        ' 6 steps are 0.28 epochs',
        'batch   4 sequences of 16 = 64 tokens',
    ):
        tap.ok(text in r.stdout, f'the screen says: {text}')
    m = metrics(s.path('one'))
    tap.ok(
        [x['tokens'] for x in m] == [64, 128, 192, 320, 448, 576]
        and [x['valid_tokens'] for x in m] == [64] * 3 + [128] * 3
        and [x['samples'] for x in m] == [4, 8, 12, 16, 20, 24],
        'samples and tokens are counted through the stage',
    )
    used = [whole(s.path('one', f'step_0000000{i}'))['exp_avg'][EMBED].any(axis=1) for i in (3, 6)]
    tap.ok(
        used[0][:80].any() and used[0][80:160].any() and not used[0][160:].any() and used[1][160:].any(),
        'a source of weight 0 is not seen before its stage',
    )
    for name, layout in (('pp 2', {'pp': 2}), ('dp 2', {'dp': 2}), ('dp 2, tp 2', {'dp': 2, 'tp': 2})):
        s.go(name, **kw, parallel=layout)
        off = max(relative(x['loss'], y['loss']) for x, y in zip(m, metrics(s.path(name))))
        tap.ok(
            off == 0 if 'pp' in layout else off < 2e-6, f'{name}: the losses of one rank, off by {off:.1e}'
        )
    for step in (2, 3, 4):
        shutil.copytree(s.path('one'), s.path('again'))
        for i in range(step + 1, 7):
            shutil.rmtree(s.path('again', f'step_{i:08}'))
        s.go('again', **kw)
        tap.ok(
            s.losses('again') == s.losses('one')
            and s.digest('again', 'step_00000006') == s.digest('one', 'step_00000006'),
            f'resumed after step {step}: to the bit',
        )
        shutil.rmtree(s.path('again'))
    for i in (5, 6):
        shutil.rmtree(s.path('one', f'step_{i:08}'))


def test_changes(tap, s):
    """From step 4 of 'one', the first of the second stage; c was used there, a and b before."""

    def resumed(name, code, text, groups, steps=6, **kw):
        shutil.copytree(s.path('one'), s.path('changed'))
        r = s.go('changed', check=False, steps=steps, groups=groups, ranks=2, parallel={'dp': 2}, **kw)
        why = '' if text in r.stderr else f'no "{text}"'
        if code:
            why = expect(r, code, text)
        elif r.returncode or len(metrics(s.path('changed'))) != steps:
            why = f'exit {r.returncode}: {last(r)}'
        tap.ok(not why, name + (f': {why}' if why else ''))
        shutil.rmtree(s.path('changed'))

    g = s.groups
    resumed('the same', 0, '', g())
    resumed('another order of the sources', 0, '&source has changed',
            g()[2::-1] + [('stage', {}), ('stage', {'start_step': 4, 'weights': [3, 2, 1], 'sequence_length': 32})])  # fmt: skip
    resumed('a weight of the stage that is running', 2,
            "&source 'a': it had 10923/65536 of the samples from step 4 on, now it has 19661; what steps 1 to 4 took is fixed", g(then=(3, 4, 3)))  # fmt: skip
    resumed('a weight of a stage that is over', 2, "&source 'a': it had 43691/65536", g(first=(5, 3, 0)))
    resumed('the start of the stage', 2, 'the stage from step 4 now begins at step 3', g(start=3))
    resumed('its length', 2, 'had sequence_length = 32, now it has 16', g(length=16))
    resumed('no stage any more', 2, 'there were 2 stages in these steps, now there are 1', g()[:2])
    resumed('a stage that comes later', 0, '&stage has changed: the steps to come follow the input',
            g() + [('stage', {'start_step': 5, 'weights': [0, 0, 1]})])  # fmt: skip
    resumed('a stage that would have come before', 2, 'there were 2 stages',
            g()[:4] + [('stage', {'start_step': 2})] + g()[4:])  # fmt: skip
    resumed('a source more', 0, '&source has changed',
            [s.source('new', file='b', weight=0)] + g()[:4] + [
                ('stage', {'start_step': 4, 'weights': [0, 1, 2, 3], 'sequence_length': 32}),
                ('stage', {'start_step': 6, 'weights': [1, 0, 0, 0]}),
            ])  # fmt: skip
    resumed('a source less', 2, "&source 'b' is not in the input any more; what steps 1 to 4 took is fixed",
            [g()[0], g()[2], ('stage', {}), ('stage', {'start_step': 4, 'weights': [1, 3], 'sequence_length': 32})])  # fmt: skip
    changed = g()
    changed[1] = s.source('b', file='c', weight=3)
    resumed('other data under a name', 2, "&source 'b' is not the one it was written with (hash ", changed)
    resumed('no sources', 2, "&source 'a' is not in the input any more", [('stage', {}), ('stage', {'start_step': 4, 'sequence_length': 32})], data={'train': s.path('a.h5')})
    # before its stage, c is free
    shutil.rmtree(s.path('one', 'step_00000004'))
    changed = g()
    changed[2] = s.source('c', file='b', weight=0)
    resumed('other data of a source that was not used yet', 0, '', changed)
    resumed('other weights of a stage to come', 0, '&stage has changed', g(then=(0, 0, 1)))


def test_validation(tap, s):
    sets = [('validation', {'name': n, 'file': s.path(n + '.h5')}) for n in 'bc']
    still = {'optim': {'learning_rate': 0.0}}
    kw = dict(steps=2, eval={'interval': 2, 'batches': 3}, **still)
    r = s.go('v', groups=s.groups()[:2] + sets, data={'validation': s.path('a.h5')}, **kw)
    m = metrics(s.path('v'))
    alone = {}
    for n in 'abc':
        s.go('v' + n, data={'validation': s.path(n + '.h5')}, **kw)
        alone[n] = metrics(s.path('v' + n))[1]['validation_loss']
    tap.ok(
        'validation_loss' not in m[0]
        and m[1].get('validation_loss') == alone['a']
        and m[1].get('validation_loss_b') == alone['b']
        and m[1].get('validation_loss_c') == alone['c'],
        'three sets: the losses of each alone, under their names',
    )
    tap.ok(
        f'validation loss {alone["a"]:.4f}, b {alone["b"]:.4f}, c {alone["c"]:.4f}' in r.stdout
        and 'data    validation_loss_c: ' in r.stdout,
        'and on the screen',
    )
    s.go('w', groups=sets, **kw)
    m = metrics(s.path('w'))[1]
    tap.ok(
        m.get('validation_loss') == alone['b'] and m.get('validation_loss_c') == alone['c'] and 'validation_loss_b' not in m,
        'without data.validation the first group is validation_loss',
    )
    # the set is read in sequences of &train in every stage
    s.go('x', groups=[('stage', {'sequence_length': 32})], data={'validation': s.path('a.h5')}, **kw)
    tap.ok(metrics(s.path('x'))[1]['validation_loss'] == alone['a'], 'in a stage of other lengths the same')


def test_refused(tap, s):
    bad = [s.source('a'), s.source('none')]
    attempt(tap, 'an absent file', lambda: expect(s.go('bad', check=False, groups=bad, ranks=2, parallel={'dp': 2}),
            3, "source 'none': ", 'none.h5'))  # fmt: skip
    r = s.go('bad', check=False, groups=bad, args=['--check'])
    tap.ok(
        r.returncode == 0 and "none.h5' does not exist yet" in r.stderr, '--check only warns of an absent file'
    )
    attempt(tap, 'a weight that vanishes', lambda: expect(s.go('bad', check=False, groups=[s.source('a'), s.source('b', weight=1e-9)]),
            2, "source 'b': its weight, 1e-09, is less than 1/65536"))  # fmt: skip
    for flag in (['--check'], ['--plan', '--ranks', '2']):
        r = s.go('plan', groups=s.groups(), steps=300, args=flag)
        tap.ok(
            'data    a             66.6672 %: ' in r.stdout
            and ' 300 steps are ' in r.stdout
            and 'stage   from step 4: sequences of 32, a 16' in r.stdout,
            f'{flag[0]} shows sources and stages',
        )


def main():
    tap, s = Tap(), Mixture()
    test_law(tap, s)
    test_changes(tap, s)
    test_validation(tap, s)
    test_refused(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
