"""Going on with a run, rule by rule of doc/INPUT.md and the tutorial: which checkpoint, which keys may change, what is said,
what is refused, and what is left of a broken checkpoint."""

import os, shutil, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

EVERY = {'interval': 2, 'keep_last': 9}


def auto(tap, s):
    first = s.go('auto', steps=4, checkpoint=EVERY)
    tap.ok('(new; seed 42)' in first.stdout, 'auto without a checkpoint starts and says so')
    tap.ok(s.steps('auto') == [2, 4], 'checkpoints of steps 2 and 4')
    truth = s.losses('auto')
    shutil.rmtree(s.path('auto/step_00000004'))
    more = s.go('auto', steps=4, checkpoint=EVERY)
    tap.ok('from ' + s.path('auto/step_00000002') in more.stdout, 'auto takes the newest and says which')
    tap.ok(s.losses('auto') == truth, 'the steps after it repeat to the bit')
    lines = [json.loads(x) for x in open(s.path('auto/metrics.jsonl'))]
    tap.ok(
        [(x['step'], x['attempt']) for x in lines] == [(1, 0), (2, 0), (3, 0), (4, 0), (3, 1), (4, 1)],
        'redone steps carry attempt 1',
    )
    tap.ok(more.stderr == '', 'nothing changed, nothing is announced')

    os.remove(s.path('auto/RUN_COMPLETE'))
    done = s.go('auto', steps=4)
    tap.ok('nothing to do' in done.stdout and 'step 4 of 4' in done.stdout, 'nothing to do at the last step')
    tap.ok(
        s.files('auto').count('RUN_COMPLETE') == 1 and len(s.losses('auto')) == 4,
        'RUN_COMPLETE again, no step',
    )
    tap.ok('|grad|' not in done.stdout, 'no table without steps')
    fewer = s.go('auto', steps=3)
    tap.ok('nothing to do' in fewer.stdout, 'train_steps below the checkpoint: nothing to do')
    raised = s.go('auto', steps=5, checkpoint=EVERY)
    tap.ok(
        [x[0] for x in s.losses('auto')] == [1, 2, 3, 4, 5]
        and 'train.train_steps = 5 (' in raised.stderr
        and 'in the checkpoint 4' in raised.stderr,
        'train_steps raised: goes on, announced',
    )
    s.go('straight', steps=5)
    tap.ok(s.losses('auto') == s.losses('straight'), 'as if it had never stopped')


def never_and_paths(tap, s):
    attempt(
        tap,
        'never with checkpoints is refused',
        lambda: expect(
            s.go('auto', ranks=2, check=False, run={'resume': 'never'}),
            2,
            "run.resume = 'never'",
            s.path('auto'),
        )
        or kept(s, 'auto'),
    )
    tap.ok(
        s.go('deep/er/never', run={'resume': 'never'}, directory=s.path('deep/er/never')).returncode == 0,
        'never makes a directory that is not there',
    )
    source = s.path('straight/step_00000005')
    os.mkdir(s.path('hollow'))
    for name, path, texts in [
        ('misspelt', s.path('straight/step_00000050'), ['no such checkpoint', 'step_00000050']),
        ('an empty folder', s.path('hollow'), ['hollow']),
        ('a run directory', s.path('straight'), ['straight']),
        ('a file', s.data, ['t.h5']),
    ]:
        attempt(
            tap,
            f'a path: {name}',
            lambda: expect(s.go('astray', ranks=2, check=False, run={'resume': path}), 3, *texts)
            or absent(s, 'astray'),
        )
    r = s.go('branch', steps=7, run={'resume': source}, checkpoint=EVERY)
    tap.ok(
        'from ' + source in r.stdout and [x[0] for x in s.losses('branch')] == [6, 7],
        'a path: starts from it',
    )
    tap.ok(
        s.steps('branch') == [6, 7] and s.steps('straight') == [5], 'a path: writes only in its own directory'
    )
    r = s.go('branch', steps=8, run={'resume': source}, checkpoint=EVERY)
    tap.ok(
        'from ' + s.path('branch/step_00000007') in r.stdout
        and [x[0] for x in s.losses('branch')] == [6, 7, 8],
        'a path: the requeued job goes on from its own checkpoint',
    )
    shutil.rmtree(source)
    r = s.go('branch', steps=9, run={'resume': source}, checkpoint=EVERY)
    tap.ok([x[0] for x in s.losses('branch')] == [6, 7, 8, 9], 'a path: not needed any more')
    r = s.go('branch', steps=9, run={'resume': s.path('branch/step_00000006')})
    tap.ok('nothing to do' in r.stdout, 'a path inside directory: its newest wins')


def kept(s, name):
    return '' if s.steps(name) and os.path.exists(s.path(name, 'RUN_COMPLETE')) else 'the run was touched'


def absent(s, name):
    return f'{name} was made' if os.path.exists(s.path(name)) else ''


# what is changed: group, key, value, and the values in the message
FIXED = [
    ('run', 'seed', 43, '43', '42'),
    ('train', 'sequence_length', 32, '32', '16'),
    ('train', 'global_batch_size', 8, '8', '4'),
    ('data', 'shuffle', False, '.false.', '.true.'),
    ('data', 'document_mask', True, '.true.', '.false.'),
    ('model', 'hidden_size', 32, '32', '64'),
    ('model', 'intermediate_size', 96, '96', '160'),
    ('model', 'num_hidden_layers', 3, '3', '2'),
    ('model', 'num_attention_heads', 8, '8', '4'),
    ('model', 'num_key_value_heads', 4, '4', '2'),
    ('model', 'head_dim', 32, '32', '16'),
    ('model', 'vocab_size', 300, '300', '256'),
    ('model', 'tie_word_embeddings', True, '.true.', '.false.'),
    ('model', 'rms_norm_eps', 1e-6, '1e-06', '1e-5'),
    ('model', 'rope_theta', 5e5, '500000', '10000'),
    ('model', 'model_type', 'qwen3', 'qwen3', 'llama'),
    ('model', 'initializer_range', 0.01, '0.01', '0.02'),
    ('model', 'max_position_embeddings', 128, '128', '16'),
    ('model', 'rope_scaling_type', 'linear', 'linear', 'none'),
]
ANNOUNCED = [
    ('train', 'train_steps', 3),
    ('train', 'micro_batch_size', 2),
    ('run', 'threads', 2),
    ('optim', 'learning_rate', 2e-3),
    ('optim', 'lr_schedule', 'linear'),
    ('optim', 'warmup_steps', 1),
    ('optim', 'weight_decay', 0.0),
    ('optim', 'clip_grad', 0.5),
    ('optim', 'adam_eps', 1e-6),
    ('optim', 'adam_beta1', 0.8),
    ('optim', 'adam_beta2', 0.9),
]
FREE = [
    ('log', 'interval', 2),
    ('checkpoint', 'interval', 1),
    ('run', 'name', 'other'),
    ('run', 'memory_limit', 5.0),
    ('checkpoint', 'keep_every', 3),
    ('debug', 'backend', 'reference'),
]


def keys(tap, s):
    s.go('keys', steps=2)
    for group, key, value, new, old in FIXED:
        more = {'rope_scaling_factor': 2.0} if key == 'rope_scaling_type' else {}
        attempt(
            tap,
            f'{group}.{key} is fixed',
            lambda: expect(
                s.go('keys', check=False, **{group: {key: value, **more}}), 2, f'{group}.{key}', new, old
            )
            or kept(s, 'keys'),
        )
    attempt(
        tap,
        'several at once, two ranks',
        lambda: expect(
            s.go('keys', ranks=2, check=False, run={'seed': 1}, data={'shuffle': False}),
            2,
            'run.seed',
            'data.shuffle',
        ),
    )
    other = token_file(s.path('other.h5'), random_ids(1200, seed=9))
    attempt(
        tap,
        'other training data',
        lambda: expect(
            s.go('keys', ranks=2, check=False, data={'train': other}),
            2,
            'training data',
            s.path('keys/step_00000002'),
        )
        or kept(s, 'keys'),
    )
    shutil.copy(s.data, s.path('moved.h5'))
    tap.ok(s.go('keys', data={'train': s.path('moved.h5')}).stderr == '', 'the same data elsewhere is fine')
    for group, key, value in ANNOUNCED:

        def body():
            kw = {group: {key: value}}
            if key == 'micro_batch_size':
                kw = {'train': {key: value}}
            if key == 'train_steps':
                kw = {'steps': value}
            shutil.rmtree(s.path('copy'), ignore_errors=True)
            shutil.copytree(s.path('keys'), s.path('copy'))
            r = s.go('copy', **kw)
            return (
                ''
                if f'{group}.{key} = ' in r.stderr and r.stderr.startswith('warning: ')
                else f'not said: {r.stderr}'
            )

        attempt(tap, f'{group}.{key} is announced', body)
    for group, key, value in FREE:
        attempt(tap, f'{group}.{key} is free', lambda: s.go('keys', **{group: {key: value}}).stderr)
    r = s.go('keys', parallel={'dp': 2}, steps=3)
    tap.ok(
        'parallel.dp = 2 (' in r.stderr and 'in the checkpoint 1' in r.stderr, 'another layout is announced'
    )
    with open(s.path('keys/log.txt')) as f:
        tap.ok('parallel.dp = 2 (' in f.read(), 'also in log.txt')


def masked(tap, s):
    data = token_file(s.path('docs.h5'), random_ids(1200), documents=range(0, 1200, 7))
    kw = dict(data={'train': data, 'document_mask': True})
    s.go('masked', **kw)
    attempt(
        tap,
        'data.mask_seams is fixed',
        lambda: expect(
            s.go('masked', check=False, data={**kw['data'], 'mask_seams': False}),
            2,
            'data.mask_seams',
            '.false.',
            '.true.',
        ),
    )
    hf = hf_folder(s.path('hf'))
    s.go('from', model={'init_from': hf})
    shutil.rmtree(hf)
    attempt(
        tap,
        'init_from is not read on a resume',
        lambda: (
            ''
            if s.go('from', steps=3, model={'init_from': hf}).returncode == 0 and len(s.losses('from')) == 3
            else 'no third step'
        ),
    )
    attempt(tap, 'nor needed', lambda: s.go('from', steps=3).stderr)
    attempt(
        tap,
        'what init_from gave is fixed',
        lambda: expect(
            s.go('from', check=False, model={'init_from': hf, 'hidden_size': 32}),
            2,
            'model.hidden_size',
            '32',
            '64',
        ),
    )


def initial(tap, s):
    s.go('zero', steps=1, checkpoint={'save_initial': True})
    tap.ok(s.steps('zero') == [0, 1], 'save_initial: step 0')
    r = s.go(
        'again', steps=1, run={'resume': s.path('zero/step_00000001')}, checkpoint={'save_initial': True}
    )
    tap.ok(
        s.steps('again') == [1] and 'nothing to do' in r.stdout,
        'save_initial after a path from outside: that step, no step left',
    )
    tap.ok(
        digest(s.path('zero/step_00000001')) == digest(s.path('again/step_00000001')), 'with the same digest'
    )
    s.go('again', steps=2, checkpoint={'save_initial': True})
    tap.ok(s.steps('again') == [1, 2], 'save_initial of a resumed run: nothing more')
    s.go('plain', steps=1, run={'resume': s.path('zero/step_00000001')})
    tap.ok(not s.steps('plain') and 'RUN_COMPLETE' in s.files('plain'), 'without it a copy is not made')


def damage(path, at=None, size=None):
    with open(path, 'r+b') as f:
        if size is not None:
            f.truncate(size)
            return
        f.seek(at, 2 if at < 0 else 0)
        b = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([b[0] ^ 1]))


def broken(tap, s):
    def fresh():
        shutil.rmtree(s.path('broken'), ignore_errors=True)
        shutil.copytree(s.path('three'), s.path('broken'))
        return s.path('broken/step_00000003')

    s.go('three', steps=3, parallel={'dp': 2}, checkpoint={'interval': 1, 'keep_last': 9})
    big = s.path('three/step_00000003/rank_00001.h5')
    size, cut = os.path.getsize(big), lambda c: damage(c + '/rank_00001.h5', size=size // 2)
    for name, change in [
        ('a shard cut short', cut),
        ('a shard lost', lambda c: os.remove(c + '/rank_00001.h5')),
        ('no manifest', lambda c: os.remove(c + '/MANIFEST.json')),
        ('a flipped byte in the manifest', lambda c: damage(c + '/MANIFEST.json', at=300)),
        ('an empty manifest', lambda c: damage(c + '/MANIFEST.json', size=0)),
        ('a foreign manifest', lambda c: open(c + '/MANIFEST.json', 'w').write('{}\n')),
    ]:

        def body():
            change(fresh())
            r = s.go('broken', steps=4, parallel={'dp': 2})
            if 'step_00000003' not in r.stderr or 'from ' + s.path('broken/step_00000002') not in r.stdout:
                return r.stdout + r.stderr
            return '' if s.losses('broken')[:3] == s.losses('three') else 'step 3 differs'

        attempt(tap, f'{name}: named, the one before is taken', body)
    names = s.files('broken')
    tap.ok('step_00000003' in names and 'step_00000004' in names, 'what was bad stays beside the new one')

    def rewritten():
        cut(fresh())
        s.go('broken', steps=3, parallel={'dp': 2})
        return (
            ''
            if 'step_00000003.bad-1' in s.files('broken')
            and digest(s.path('broken/step_00000003')) == digest(s.path('three/step_00000003'))
            else str(s.files('broken'))
        )

    attempt(tap, 'a bad checkpoint in the way is kept under another name', rewritten)

    def flipped():
        damage(fresh() + '/rank_00001.h5', at=-100)
        return expect(
            s.go('broken', steps=4, check=False, parallel={'dp': 2}), 3, 'step_00000003/rank_00001.h5'
        )

    attempt(tap, 'a flipped byte among the values: refused, file named', flipped)

    def all_bad():
        fresh()
        for k in (1, 2, 3):
            os.remove(s.path(f'broken/step_0000000{k}/MANIFEST.json'))
        before = s.files('broken')
        return expect(
            s.go('broken', steps=4, check=False, parallel={'dp': 2}), 3, 'none of its 3 checkpoints is good'
        ) or ('' if before == s.files('broken') else 'files were written')

    attempt(tap, 'none good: refused, not started anew', all_bad)
    attempt(
        tap,
        'none good, but a path to a good one',
        lambda: (
            ''
            if s.go(
                'broken', steps=4, run={'resume': s.path('three/step_00000003')}, parallel={'dp': 2}
            ).returncode
            == 0
            else 'no'
        ),
    )
    os.makedirs(s.path('three/step_00000009.tmp-0'))
    s.go('three', steps=3, parallel={'dp': 2})
    tap.ok(
        s.steps('three') == [1, 2, 3] and not any('tmp' in f for f in s.files('three')),
        'a half-written checkpoint is removed at start',
    )


def main():
    tap, s = Tap(), Scene('resume')
    for part in (auto, never_and_paths, keys, masked, initial, broken):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
