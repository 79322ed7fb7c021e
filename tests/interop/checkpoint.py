"""usage: checkpoint.py index INDEX EXPORT | rounded FLOAT32 BFLOAT16 | folder EXPORT FOLDER...
Exit 0 if they hold the same."""
import json
import os
import sys

import h5py
import numpy as np

KINDS = ('weights', 'exp_avg', 'exp_avg_sq')


def fail(text):
    sys.exit(text)


def same(where, a, b):
    if a.shape != b.shape or a.dtype != b.dtype or not np.array_equal(a, b):
        fail(f'{where} differs')


def index(path, export):
    """Whole tensors of a checkpoint, its texts, its counters; slabs carry what they are."""
    with h5py.File(path, 'r') as a, h5py.File(export, 'r') as b:
        for kind in KINDS:
            if set(a[kind]) != set(b[kind]) or not len(a[kind]):
                fail(f'{kind}: other names')
            for name in a[kind]:
                same(f'{kind}/{name}', a[kind][name][...], b[kind][name][...])
        for name in ('input_nml', 'tokenizer_json'):
            same(name, a[name][...], b[name][...])
        for name in ('step', 'samples', 'tokens', 'adam_t', 'attempt', 'loss_scale', 'loss_scale_good_steps', 'loss_scale_tolerance'):
            if a.attrs[name] != b.attrs[name]:
                fail(f'attribute {name}')
        json.loads(bytes(a['tokenizer_json'][...]))
        shards(os.path.dirname(path), a)


def shards(folder, whole):
    manifest = json.load(open(os.path.join(folder, 'MANIFEST.json')))
    for name in [f['name'] for f in manifest['files'] if f['name'] != 'index.h5']:
        with h5py.File(os.path.join(folder, name), 'r') as f:
            for kind in KINDS:
                f[kind].visititems(lambda _, x: slab(x, whole[kind]))
    for s in manifest['slabs']:
        at = tuple(slice(o, o + e) for o, e in zip(s['offset'], s['extent']))
        raw = np.fromfile(os.path.join(folder, manifest['files'][s['file']]['name']), dtype=s['dtype'],
                          count=int(np.prod(s['extent'])), offset=s['at']).reshape(s['extent'])
        same(s['name'], raw, whole[s['kind']][s['name']][at])


def slab(x, whole):
    if isinstance(x, h5py.Dataset):
        tensor = whole[x.attrs['name'].decode()]
        off, ext = np.atleast_1d(x.attrs['offset']), np.atleast_1d(x.attrs['extent'])
        if tuple(np.atleast_1d(x.attrs['global_shape'])) != tensor.shape or x.attrs['dtype'].decode() != tensor.dtype:
            fail(f'{x.name}: attributes')
        same(x.name, x[...], tensor[tuple(slice(o, o + e) for o, e in zip(off, ext))])


def round_bf16(x):
    u = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000
    return u.astype(np.uint32).view(np.float32)


def rounded(full, half):
    with h5py.File(full, 'r') as a, h5py.File(half, 'r') as b:
        for name in a['weights']:
            same(name, round_bf16(a['weights'][name][...]), b['weights'][name][...].astype(np.float32))


def folder(export, *folders):
    from safetensors import safe_open
    with h5py.File(export, 'r') as f:
        want = {name: f['weights'][name][...] for name in f['weights']}
    for path in folders:
        files = sorted(n for n in os.listdir(path) if n.endswith('.safetensors'))
        have = {}
        for name in files:
            with safe_open(os.path.join(path, name), framework='np') as f:
                if f.metadata() != {'format': 'pt'}:
                    fail(f'{path}/{name}: metadata')
                have.update({k: f.get_tensor(k) for k in f.keys()})
        if set(have) != set(want):
            fail(f'{path}: other names')
        for name in want:
            same(f'{path}: {name}', have[name], want[name])
        if len(files) > 1:
            index_json = json.load(open(os.path.join(path, 'model.safetensors.index.json')))
            if set(index_json['weight_map']) != set(want) or set(index_json['weight_map'].values()) != set(files):
                fail(f'{path}: index')
        config = json.load(open(os.path.join(path, 'config.json')))
        if config['vocab_size'] != want['model.embed_tokens.weight'].shape[0]:
            fail(f'{path}: config.json')


if __name__ == '__main__':
    {'index': index, 'rounded': rounded, 'folder': folder}[sys.argv[1]](*sys.argv[2:])
