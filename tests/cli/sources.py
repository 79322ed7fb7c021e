"""The data of a run as a user names it: token files of five programs."""

import os, shutil, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

EOD = 3


def write(path, *parts):
    with open(path, 'wb') as f:
        for p in parts:
            f.write(p if isinstance(p, bytes) else np.asarray(p[0], p[1]).tobytes())
    return path


def ends_of(ids):
    """Documents end behind each EOD; what is left is one more."""
    ends = [i + 1 for i in range(len(ids)) if ids[i] == EOD]
    return ends if ends and ends[-1] == len(ids) else ends + [len(ids)]


def megatron(path, ids, code=8, dtype='<u2'):
    ends = ends_of(ids)
    starts = [0] + ends[:-1]
    size = np.dtype(dtype).itemsize
    n = len(ends)
    write(
        path[:-4] + '.idx',
        b'MMIDIDX\0\0',
        ([1], '<u8'),
        ([code], 'u1'),
        ([n, n + 1], '<u8'),
        (np.subtract(ends, starts), '<i4'),
        (np.multiply(starts, size), '<i8'),
        (range(n + 1), '<i8'),
    )
    return write(path, (ids, dtype))


def datatrove(path, ids, dtype='<u2'):
    write(path + '.index', (ends_of(ids), '<u8'))
    write(path + '.metadata', f'bytes|{np.dtype(dtype).itemsize}\n{len(ids)}\n1 k'.encode())
    return write(path, (ids, dtype))


def llmc(path, ids, magic=20240520, version=1, dtype='<u2'):
    head = np.zeros(256, '<i4')
    head[:3] = magic, version, len(ids)
    return write(path, (head, '<i4'), (ids, dtype))


def raw(path, ids, dtype):
    return write(path, (ids, dtype))


def all_formats(s, ids):
    """name: (file, keys of &data that it needs)"""
    p = s.path
    # documents are where import puts them: behind each eod
    ours = token_file(p('ours.h5'), ids, [0] + [e for e in ends_of(ids) if e < len(ids)], eod=EOD)
    eod = {'end_of_document': EOD}
    return {
        'ours': (ours, {}),
        'Megatron': (megatron(p('m.bin'), ids), {}),
        'Megatron, int32': (megatron(p('m4.bin'), ids, 4, '<i4'), {}),
        'datatrove': (datatrove(p('d.ds'), ids), {}),
        'datatrove, uint32': (datatrove(p('d4.ds'), ids, '<u4'), {}),
        'llm.c': (llmc(p('l.bin'), ids), eod),
        'llm.c, uint32': (llmc(p('l4.bin'), ids, 20240801, 7, '<u4'), eod),
        'raw uint16': (raw(p('r2'), ids, '<u2'), {'data_dtype': 'uint16', **eod}),
        'raw int64': (raw(p('r8'), ids, '<i8'), {'data_dtype': 'int64', **eod}),
    }


def test_formats(tap, s, files):
    for mask in (False, True):
        losses = {}
        for i, (name, (path, keys)) in enumerate(files.items()):
            losses[name] = []
            run = f'format-{mask}-{i}'
            data = {'train': path, 'validation': path, 'document_mask': mask, **keys}
            s.go(run, seq=24, batch=4, steps=3, data=data, eval={'interval': 3}, model={'vocab_size': 256})
            losses[name] = [
                (m['loss'], m['grad_norm'], m['valid_tokens'], m.get('validation_loss'))
                for m in metrics(s.path(run))
            ]
        off = [k for k in losses if losses[k] != losses['ours']]
        tap.ok(
            not off and len(losses['ours']) == 3 and (losses['ours'][0][2] == 96) != mask,
            f'one stream in {len(losses)} files, documents masked: {mask}: one loss to the bit'
            + (f', but {off}' if off else ''),
        )
    a = s.path('format-False-0')
    path, keys = files['Megatron']
    s.go('format-2', seq=24, steps=3, parallel={'dp': 2, 'tp': 2}, data={'train': path, **keys})
    tap.ok(
        all(relative(x['loss'], y['loss']) < 1e-5 for x, y in zip(metrics(a), metrics(s.path('format-2')))),
        'a Megatron file on four ranks',
    )


def test_refused(tap, s, files):
    def refused(name, code, text, **kw):
        attempt(tap, name, lambda: expect(s.go('bad', ranks=2, check=False, **kw), code, text))
        shutil.rmtree(s.path('bad'), ignore_errors=True)

    path = files['Megatron'][0]
    refused('no vocabulary in the data', 2, 'm.bin (Megatron) does not say it: give vocab_size',
            data={'train': path}, model={'vocab_size': 0})  # fmt: skip
    refused('a mask without documents', 2, 'l.bin (llm.c) does not say where documents end',
            data={'train': files['llm.c'][0], 'document_mask': True})  # fmt: skip
    refused('raw without a type', 3, 'say of which type (data_dtype', data={'train': s.path('r2')})
    refused('a type that is not the file\'s', 3, 'its tokens (Megatron) are uint16, but data_dtype says int32',
            data={'train': path, 'data_dtype': 'int32'})  # fmt: skip
    refused('another end of documents', 3, 'its end-of-document id is 3, but 5 was stated',
            data={'train': files['ours'][0], 'end_of_document': 5})  # fmt: skip
    refused('half a token', 3, 'r3: 7 bytes of tokens are not a whole number of uint32',
            data={'train': write(s.path('r3'), b'1234567'), 'data_dtype': 'uint32'})  # fmt: skip
    write(s.path('z.idx'), open(s.path('m.idx'), 'rb').read())
    refused('a .bin of another run', 3, 'they are not of one run',
            data={'train': raw(s.path('z.bin'), range(100), '<u2')})  # fmt: skip
    refused('an id without a row', 3, 'm.bin: token 190 has id 255, but model.vocab_size is 255: set vocab_size to at least 256',
            data={'train': path}, model={'vocab_size': 255})  # fmt: skip
    r = s.go('bad', check=False, args=['--check'], data={'train': path}, model={'vocab_size': 255})
    tap.ok(r.returncode == 3 and 'token 190 has id 255' in r.stderr, '--check sees it too')


def test_at_use(tap, s):
    """A bad id between the samples that are looked at: met in training, by one rank of four; all end."""
    ids = random_ids(1 << 21, seed=4)
    at = 4096 + 77  # block 1: every other is looked at
    ids[at] = 700
    path = raw(s.path('late.u16'), ids, '<u2')
    k = at // 512
    kw = dict(
        seq=512,
        batch=8,
        steps=4,
        data={'train': path, 'data_dtype': 'uint16', 'shuffle': False},
        parallel={'dp': 2, 'pp': 2},
        model={'num_hidden_layers': 1, 'hidden_size': 8, 'intermediate_size': 8, 'head_dim': 2},
        train={'micro_batch_size': 2},
    )
    attempt(
        tap,
        'a bad id at use: file and position, one voice, all ranks end',
        lambda: expect(
            s.go('late', check=False, **kw),
            3,
            f'late.u16: token {at} has id 700, but model.vocab_size is 256',
        ),
    )
    tap.ok(
        len(metrics(s.path('late'))) == k // 8 == 1 and os.path.exists(s.path('late', 'RUN_FAILED')),
        'in the step that meets it',
    )


def main():
    tap, s = Tap(), Scene('sources')
    ids = random_ids(1200, seed=2)
    files = all_formats(s, ids)
    test_formats(tap, s, files)
    test_refused(tap, s, files)
    test_at_use(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
