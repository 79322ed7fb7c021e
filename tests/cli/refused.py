"""A run that cannot be: rank counts, token files, Hugging Face folders, memory, launcher. One message with file and cure, the
right exit code, all ranks end, and nothing is written."""

import os, shutil, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *


def ranks(tap, s):
    def case(name, n, texts, **kw):
        attempt(
            tap,
            name,
            lambda: expect(s.go('ranks', ranks=n, check=False, **kw), 2, *texts) or untouched(s, 'ranks'),
        )

    case(
        '3 ranks for tp 2',
        3,
        ['tp 2 x cp 1 x pp 1 = 2 ranks', 'use -np 2 (dp 1) or -np 4 (dp 2)'],
        parallel={'tp': 2},
    )
    case('1 rank for pp 2', 1, ['= 2 ranks for one copy of the model', 'use -np 2'], parallel={'pp': 2})
    case(
        '2 ranks for dp 1',
        2,
        ['dp 1 x tp 1 x cp 1 x pp 1 = 1 ranks, but there are 2: use -np 1'],
        parallel={'dp': 1},
    )
    case(
        'dp from the ranks breaks a rule',
        3,
        ['dp * micro_batch_size = 3 must divide `global_batch_size` = 4'],
    )
    case(
        'two faults at once',
        2,
        ['`tp` = 3 must divide', '`warmup_steps` = 9 is above'],
        parallel={'tp': 3},
        optim={'warmup_steps': 9},
    )
    text = 'Slurm says SLURM_NTASKS=2, but MPI'
    case('a singleton of a job of two', 1, [text, 'srun --mpi=pmi2'], env={'SLURM_NTASKS': '2'})

    def launched():
        r = s.go('ranks', ranks=2, check=False, env={'SLURM_NTASKS': '2'})
        return f'exit {r.returncode}: {last(r)}' if r.returncode else ''

    attempt(tap, 'two ranks of a job of two run', launched)
    shutil.rmtree(s.path('ranks'))


def untouched(s, name):
    return f'{name} was made' if os.path.exists(s.path(name)) else ''


def foreign_h5(path):
    import h5py

    with h5py.File(path, 'w') as f:
        f['x'] = np.arange(10)
    return path


def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)
    return path


def data(tap, s):
    with open(s.data, 'rb') as f:
        good = f.read()
    flipped = bytearray(good)
    flipped[-3] ^= 1
    os.mkdir(s.path('folder.h5'))
    files = {
        'absent': (s.path('absent.h5'), ['absent.h5', 'No such file']),
        'text': (
            write(s.path('text.h5'), b'It was a dark night.\n'),
            ['text.h5: not a token file: it is text', 'pretrain-data tokenize'],
        ),
        'empty': (write(s.path('empty.h5'), b''), ['empty.h5: ', 'empty']),
        'truncated': (write(s.path('cut.h5'), good[:-700]), ['cut.h5: ', 'truncated']),
        'another HDF5 file': (foreign_h5(s.path('other.h5')), ['other.h5: ', 'pretrain-data']),
        'a folder': (s.path('folder.h5'), ['folder.h5']),
        'noise after the signature': (
            write(s.path('noise.h5'), b'\x89HDF\r\n\x1a\n' + bytes(range(256)) * 9),
            ['noise.h5: '],
        ),
    }
    for name, (path, texts) in files.items():
        attempt(
            tap,
            f'training data: {name}',
            lambda: expect(s.go('data', ranks=2, check=False, data={'train': path}), 3, *texts)
            or untouched(s, 'data'),
        )
    for name in ('absent', 'truncated'):
        attempt(
            tap,
            f'validation data: {name}',
            lambda: expect(
                s.go('data', ranks=2, check=False, data={'validation': files[name][0]}, eval={'interval': 1}),
                3,
                *files[name][1],
            )
            or untouched(s, 'data'),
        )
    attempt(
        tap,
        'the second of two files',
        lambda: expect(
            s.go('data', ranks=2, check=False, data={'train': [s.data, files['text'][0]]}),
            3,
            'text.h5: not a token file',
        ),
    )
    ids = random_ids(1200, 100)
    ids[777] = 199
    other = token_file(s.path('large.h5'), ids, vocab=200)
    attempt(
        tap,
        'an id without a row in the model: id and position',
        lambda: expect(
            s.go('data', ranks=2, check=False, data={'train': other}, model={'vocab_size': 150}),
            3,
            'large.h5: token 777 has id 199, but model.vocab_size is 150',
        )
        or untouched(s, 'data'),
    )
    attempt(
        tap,
        'the same of validation data',
        lambda: expect(
            s.go(
                'data',
                check=False,
                data={'validation': other},
                model={'vocab_size': 150},
                eval={'interval': 1},
            ),
            3,
            'has id',
        ),
    )
    attempt(
        tap,
        'a larger vocabulary that is not used is fine',
        lambda: s.go('fine', data={'train': other}, model={'vocab_size': 200}).stderr,
    )
    short = token_file(s.path('short.h5'), random_ids(16))
    attempt(
        tap,
        'data shorter than a sample',
        lambda: expect(s.go('data', ranks=2, check=False, data={'train': short}), 3, 'short.h5', '16')
        or untouched(s, 'data'),
    )
    attempt(
        tap,
        'validation data shorter than a sample',
        lambda: expect(
            s.go('data', ranks=2, check=False, data={'validation': short}, eval={'interval': 1}),
            3,
            'short.h5',
        ),
    )


Q = 'model.layers.1.self_attn.q_proj.weight'


def folders(tap, s):
    def made(name, **kw):
        return hf_folder(s.path(name), **kw)

    def tensor(change):
        return lambda t: change(t)

    def replaced(value):
        return lambda t: t.__setitem__(Q, value)

    cut = made('hf-cut')
    raw = open(cut + '/model.safetensors', 'rb').read()
    write(cut + '/model.safetensors', raw[:-100])
    noise = made('hf-noise')
    write(noise + '/model.safetensors', b'\xff' * 64)
    huge = made('hf-huge')
    write(huge + '/model.safetensors', struct.pack('<Q', 1 << 60) + b'{}')
    nothing = made('hf-nothing')
    os.remove(nothing + '/model.safetensors')
    config = made('hf-config')
    os.remove(config + '/config.json')
    broken = made('hf-broken')
    write(broken + '/config.json', b'{"hidden_size": 64,')
    lost = made('hf-lost')
    os.rename(lost + '/model.safetensors', lost + '/a.safetensors')
    write(lost + '/model.safetensors.index.json', json.dumps({'weight_map': {Q: 'b.safetensors'}}).encode())
    cases = [
        (
            'a tensor is missing',
            made('hf-miss', change=lambda t: t.pop(Q)),
            3,
            [f"tensor '{Q}' [64, 64] is missing"],
        ),
        (
            'a tensor of another shape',
            made('hf-shape', change=replaced(np.zeros((64, 32), '<f4'))),
            3,
            [f"tensor '{Q}' has shape [64, 32], config.json asks for [64, 64]"],
        ),
        (
            'a tensor too many',
            made(
                'hf-extra',
                change=lambda t: t.__setitem__('model.layers.0.self_attn.q_proj.bias', np.zeros(64, '<f4')),
            ),
            3,
            ["no place for tensor 'model.layers.0.self_attn.q_proj.bias'"],
        ),
        (
            'a tensor of whole numbers',
            made('hf-int', change=replaced(np.zeros((64, 64), '<i4'))),
            3,
            [Q, 'floating-point'],
        ),
        ('no config.json', config, 3, ['hf-config/config.json', 'No such file']),
        ('config.json is broken', broken, 3, ['hf-broken/config.json']),
        ('no safetensors', nothing, 3, ['hf-nothing', 'model.safetensors']),
        ('safetensors truncated', cut, 3, ['hf-cut/model.safetensors', 'truncated']),
        ('safetensors of noise', noise, 3, ['hf-noise/model.safetensors']),
        ('safetensors with a header of 2^60 bytes', huge, 3, ['hf-huge/model.safetensors']),
        ('a shard of the index is missing', lost, 3, ['b.safetensors']),
        ('no such folder', s.path('hf-none'), 3, ['hf-none/config.json', 'No such file']),
        (
            'a feature that is not there: activation',
            made('hf-gelu', config={'hidden_act': 'gelu'}),
            3,
            ['hidden_act', 'gelu'],
        ),
        (
            'a feature that is not there: yarn',
            made('hf-yarn', config={'rope_scaling': {'rope_type': 'yarn', 'factor': 4.0}}),
            3,
            ['yarn'],
        ),
        ('another model type', made('hf-gpt', config={'model_type': 'gpt2'}), 3, ['gpt2']),
    ]
    for name, path, code, texts in cases:
        attempt(
            tap,
            f'init_from: {name}',
            lambda: expect(s.go('hf', ranks=2, check=False, model={'init_from': path}), code, *texts)
            or untouched(s, 'hf'),
        )
        attempt(
            tap,
            f'init_from: {name}, --check',
            lambda: expect(
                s.go('hf', ranks=1, check=False, args=['--check'], model={'init_from': path}), code, *texts
            ),
        )
    good = made('hf-good')
    attempt(
        tap,
        'init_from: a key that differs from config.json',
        lambda: expect(
            s.go('hf', ranks=2, check=False, model={'init_from': good, 'hidden_size': 32}),
            2,
            'model.hidden_size is 32, but config.json in init_from',
            'says 64',
        )
        or untouched(s, 'hf'),
    )
    attempt(
        tap,
        'init_from: the data has ids that the model lacks',
        lambda: expect(
            s.go(
                'hf',
                ranks=2,
                check=False,
                model={'init_from': hf_folder(s.path('hf-small'), {**T0, 'vocab_size': 100})},
            ),
            3,
            'model.vocab_size is 100',
        )
        or untouched(s, 'hf'),
    )
    attempt(
        tap,
        'init_from: a key that agrees is fine',
        lambda: s.go(
            'fine2', ranks=2, model={'init_from': good, 'rms_norm_eps': 1e-5, 'num_key_value_heads': 2}
        ).stderr,
    )
    tied = made('hf-tied', config={'tie_word_embeddings': True})
    attempt(
        tap,
        'init_from: a head beside a tied embedding is ignored aloud',
        lambda: (
            ''
            if "'lm_head.weight' is ignored" in s.go('fine3', ranks=2, model={'init_from': tied}).stderr
            else 'not said'
        ),
    )


def resources(tap, s):
    attempt(
        tap,
        'memory_limit too small',
        lambda: expect(
            s.go('memory', ranks=2, check=False, run={'memory_limit': 0.001}),
            6,
            'the limit is 0.001 GiB',
            'pretrain --plan',
        )
        or untouched(s, 'memory'),
    )
    order = dict(run={'memory_limit': 0.001}, data={'train': s.path('absent.h5')})
    attempt(
        tap,
        'files are refused before memory',
        lambda: expect(s.go('memory', ranks=2, check=False, **order), 3, 'absent.h5'),
    )
    attempt(
        tap,
        'input is refused before files',
        lambda: expect(s.go('memory', ranks=2, check=False, parallel={'tp': 3}, **order), 2, '`tp` = 3'),
    )
    write(s.path('taken'), b'a file')
    attempt(
        tap,
        'the run directory is a file',
        lambda: expect(s.go('taken', ranks=2, check=False), 3, s.path('taken')),
    )
    attempt(
        tap,
        'the run directory is below a file',
        lambda: expect(s.go('below', ranks=2, check=False, directory=s.path('taken/run')), 3, 'taken'),
    )
    for name in ('proc', 'sys'):
        if os.path.isdir('/' + name):
            attempt(
                tap,
                f'the run directory cannot be made in /{name}',
                lambda: expect(
                    s.go('rofs', ranks=2, check=False, directory=f'/{name}/pretrain-run'),
                    3,
                    f'/{name}/pretrain-run',
                ),
            )


def main():
    tap, s = Tap(), Scene('refused')
    for part in (ranks, data, folders, resources):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
