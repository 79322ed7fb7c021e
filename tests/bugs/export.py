"""Situations that went wrong in other programs, as experiments: the way to Hugging Face's files and back. The logits of
transformers for these models are in tests/golden; here names, shapes, values, types and config.json are compared.
"""

import os, shutil, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

EMBED, HEAD = 'model.embed_tokens.weight', 'lm_head.weight'
FIRST = {'save_initial': True, 'interval': 0, 'keep_last': 9}


def merge(checkpoint, out, *args):
    r = run(['pretrain-merge', checkpoint, '-o', out, *args])
    r.seconds, r.deck = 0, checkpoint
    return r


def export(checkpoint, out, *args):
    r = merge(checkpoint, out, *args)
    if r.returncode:
        raise RuntimeError(last(r))
    with open(out + '/config.json') as f:
        config = json.load(f)
    return safetensors(out + '/model.safetensors'), config


def content(folder):
    return {f: open(os.path.join(folder, f), 'rb').read() for f in sorted(os.listdir(folder))}


def heads(h, g, k):
    return {
        **T0,
        'hidden_size': h * k,
        'num_attention_heads': h,
        'num_key_value_heads': g,
        'intermediate_size': 162 if g == 3 else 160,
    }


def b61(tap, s):
    """What came in goes out, row by row, through any layout."""
    for h, g, k in ((4, 4, 16), (4, 2, 16), (4, 1, 16), (6, 3, 16), (8, 2, 16), (4, 2, 20), (6, 3, 20)):

        def body():
            name, model = f'b61-{h}-{g}-{k}', heads(h, g, k)
            source = hf_folder(s.path(name + '-hf'), model)
            outs = []
            for layout in [{'pp': 2}, {'tp': 2}] if g % 2 == 0 or g == 1 else [{'pp': 2}, {'tp': 3}]:
                run_name = name + ''.join(f'-{a}{b}' for a, b in layout.items())
                s.go(
                    run_name,
                    steps=1,
                    seq=60,
                    model={'init_from': source, 'max_position_embeddings': 64},
                    parallel=layout,
                    checkpoint=FIRST,
                )
                w, config = export(s.path(run_name, 'step_00000000'), s.path(run_name + '-out'))
                have = safetensors(source + '/model.safetensors')
                if set(w) != set(have):
                    return f'names differ: {sorted(set(w) ^ set(have))[:3]}'
                for t in have:
                    if not np.array_equal(w[t], have[t]):
                        return f'{layout}: {t} differs'
                shape = w['model.layers.1.self_attn.k_proj.weight'].shape
                if shape != (g * k, h * k):
                    return f'k_proj is {shape}'
                if (config['head_dim'], config['num_attention_heads'], config['num_key_value_heads']) != (
                    k,
                    h,
                    g,
                ):
                    return str(config)
                outs.append(content(s.path(run_name + '-out')))
            return '' if outs[0] == outs[1] else 'the exports differ'

        attempt(tap, f'B61: {h} heads on {g} of {k}: in and out again, the same in two layouts', body)
    kw = dict(steps=6, seq=60, checkpoint={**FIRST, 'save_initial': True})
    s.go('b61', steps=5, seq=60)
    start, outs = s.path('b61/step_00000005'), {}
    for name, layout in [
        ('pp 1', {}),
        ('tp 2', {'tp': 2}),
        ('tp 4', {'tp': 4}),
        ('pp 2', {'pp': 2}),
        ('dp 2', {'dp': 2}),
        ('pp 4', {'pp': 4}),
    ]:
        s.go('b61 ' + name, run={'resume': start}, parallel=layout, **kw)
        merge(s.path('b61 ' + name, 'step_00000005'), s.path('b61-out ' + name))
        outs[name] = content(s.path('b61-out ' + name))
    tap.ok(
        len(outs['pp 1']) >= 4 and all(x == outs['pp 1'] for x in outs.values()),
        f'B61: one state, one export, byte by byte, in {len(outs)} layouts',
    )


def b63(tap, s):
    rope = dict(
        rope_theta=5e5,
        rope_scaling_type='llama3',
        rope_scaling_factor=8.0,
        rope_low_freq_factor=1.0,
        rope_high_freq_factor=4.0,
        rope_original_max_position_embeddings=8192,
    )
    model = {**heads(2, 1, 64), **rope}
    s.go('b63', steps=1, model=model)
    w, config = export(s.path('b63/step_00000001'), s.path('b63-out'))
    want = {
        'rope_type': 'llama3',
        'factor': 8.0,
        'low_freq_factor': 1.0,
        'high_freq_factor': 4.0,
        'original_max_position_embeddings': 8192,
    }
    tap.ok(
        {k: config['rope_scaling'].get(k) for k in want} == want and config['rope_theta'] == 5e5,
        'B63: llama3 scaling is exported for v4',
    )
    tap.ok(
        {k: config['rope_parameters'].get(k) for k in want} == want
        and config['rope_parameters']['rope_theta'] == 5e5,
        'B63: and for v5',
    )
    for form, c in (
        ('v4', {'rope_theta': 5e5, 'rope_scaling': want}),
        ('v5', {'rope_theta': None, 'rope_parameters': {**want, 'rope_theta': 5e5}}),
    ):
        folder = hf_folder(s.path('b63-' + form), heads(2, 1, 64), config=c)
        s.go('b63-run-' + form, steps=1, model={'init_from': folder})
        text = open(s.path('b63-run-' + form, 'input.nml')).read()
        tap.ok(
            "rope_scaling_type = 'llama3'" in text
            and 'rope_scaling_factor = 8' in text
            and 'rope_theta = 500000' in text,
            f'B63: read from {form}',
        )
    plain = dict(
        model=heads(2, 1, 64),
        seq=512,
        batch=1,
        steps=1,
        data={'train': token_file(s.path('long.h5'), random_ids(600))},
    )
    s.go('b63-scaled', **{**plain, 'model': {**model, 'initializer_range': 0.2}})
    s.go('b63-plain', **{**plain, 'model': {**heads(2, 1, 64), 'rope_theta': 5e5, 'initializer_range': 0.2}})
    tap.ok(s.losses('b63-scaled')[0][2] != s.losses('b63-plain')[0][2], 'B63: it has an effect')
    attempt(
        tap,
        'B63: its keys without it are refused',
        lambda: expect(
            s.go('b63-x', check=False, model={**rope, 'rope_scaling_type': None}),
            2,
            'has an effect only with rope_scaling_type',
        ),
    )


def b65(tap, s):
    text = s.path('text.txt')
    with open(text, 'w') as f:
        f.write('It was a bright cold day in April, and the clocks were striking. ' * 12)
    data = s.path('bytes.h5')
    r = run(['pretrain-data', 'tokenize', '--tokenizer', 'bytes', '-o', data, text])
    if r.returncode:
        raise RuntimeError(last(r))
    for tied in (False, True):
        for pp in (1, 2):

            def body():
                name = f'b65-{tied}-{pp}'
                s.go(
                    name,
                    steps=2,
                    model={**T0, 'vocab_size': 0, 'tie_word_embeddings': tied},
                    data={'train': data},
                    parallel={'pp': pp},
                )
                w, c = export(s.path(name, 'step_00000002'), s.path(name + '-out'))
                want = set(t0_shapes({**T0, 'tie_word_embeddings': tied}))
                if set(w) != want:
                    return f'names: {sorted(set(w) ^ want)}'
                if not tied and np.array_equal(w[EMBED], w[HEAD]):
                    return 'head equals embedding'
                if c['tie_word_embeddings'] is not tied or c['vocab_size'] != 257 or w[EMBED].shape[0] != 257:
                    return str(c)
                fields = {
                    'rms_norm_eps': 1e-5,
                    'max_position_embeddings': 16,
                    'hidden_act': 'silu',
                    'torch_dtype': 'float32',
                    'dtype': 'float32',
                    'eos_token_id': 256,
                    'model_type': 'llama',
                    'architectures': ['LlamaForCausalLM'],
                }
                bad = {k: c.get(k) for k, v in fields.items() if c.get(k) != v}
                if bad:
                    return str(bad)
                g, t = (
                    json.load(open(s.path(name + '-out', f)))
                    for f in ('generation_config.json', 'tokenizer_config.json')
                )
                if (
                    g.get('eos_token_id') != 256
                    or t.get('eos_token') != '<|endoftext|>'
                    or t.get('tokenizer_class') != 'PreTrainedTokenizerFast'
                ):
                    return f'{g} {t}'
                added = json.load(open(s.path(name + '-out', 'tokenizer.json')))['added_tokens']
                return (
                    ''
                    if any(a['id'] == 256 and a['content'] == '<|endoftext|>' for a in added)
                    else 'tokenizer.json'
                )

            attempt(
                tap,
                f'B65: {"tied" if tied else "untied"} from pp {pp}: tensors, flag, ids and config.json agree',
                body,
            )


def bf16(x):
    return (np.asarray(x, '<f4').view('<u4') >> 16).astype('<u2')


def b67(tap, s):
    planted = np.array([1 + 2**-8 + 2**-20, 1.00390625, 1.01171875, 1e-8, -0.0, 3e-39, 65504, 1e-7], '<f4')
    want = {
        'bfloat16': bf16([1.0078125, 1.0, 1.015625]),
        'float16': np.array([1.00390625, 1.00390625, 1.01171875, 0, -0.0, 0, 65504, 1e-7], '<f2'),
    }
    source = hf_folder(
        s.path('b67-hf'), change=lambda t: t['model.norm.weight'].__setitem__(slice(0, 8), planted)
    )
    s.go('b67', steps=1, model={'init_from': source}, checkpoint=FIRST)
    at = s.path('b67/step_00000000')
    for dtype, size, code in (
        ('float32', 4, 'F32'),
        ('bfloat16', 2, 'BF16'),
        ('float16', 2, 'F16'),
        ('float64', 8, 'F64'),
    ):
        w, c = export(at, s.path('b67-' + dtype), '--dtype', dtype)
        raw = open(s.path('b67-' + dtype, 'model.safetensors'), 'rb').read()
        (n,) = struct.unpack('<Q', raw[:8])
        head = {k: v for k, v in json.loads(raw[8 : 8 + n]).items() if k != '__metadata__'}
        tap.ok(
            {v['dtype'] for v in head.values()} == {code}
            and c['torch_dtype'] == c['dtype'] == dtype
            and len(raw) == 8 + n + size * T0_COUNT,
            f'B67: {dtype}: tensors, config and file size say so',
        )
        row = w['model.norm.weight']
        if dtype == 'bfloat16':
            tap.ok(np.array_equal(row[:3], want[dtype]), 'B67: bfloat16 rounds to nearest even')
        elif dtype == 'float16':
            tap.ok(
                np.array_equal(row[:8].view('<u2'), want[dtype].view('<u2')),
                'B67: float16 rounds to nearest even',
            )
        else:
            tap.ok(np.array_equal(row[:8], planted), f'B67: {dtype} changes nothing')
    huge = hf_folder(s.path('b67-huge-hf'), change=lambda t: t['model.norm.weight'].__setitem__(3, 7e4))
    s.go('b67-huge', steps=1, model={'init_from': huge}, checkpoint=FIRST)
    attempt(
        tap,
        'B67: a float16 overflow is refused, tensor named, nothing left',
        lambda: expect(
            merge(s.path('b67-huge/step_00000000'), s.path('b67-over'), '--dtype', 'float16'),
            4,
            'model.norm.weight',
            voices=0,
        )
        or ('' if not [f for f in os.listdir(s.dir) if f.startswith('b67-over')] else 'something is left'),
    )
    sharded = merge(at, s.path('b67-parts'), '--max-shard-size', '200kB')
    files = [f for f in os.listdir(s.path('b67-parts')) if f.endswith('.safetensors')]
    parts = {}
    for f in files:
        parts.update(safetensors(s.path('b67-parts', f)))
    one = safetensors(s.path('b67-float32/model.safetensors'))
    tap.ok(
        len(files) > 2 and set(parts) == set(one) and all(np.array_equal(parts[k], one[k]) for k in one),
        f'B67: {len(files)} shards hold the same',
    )
    s.go('b67-again', steps=1, model={'init_from': s.path('b67-parts')}, checkpoint=FIRST)
    tap.ok(
        all(
            np.array_equal(v, one[k]) for k, v in whole(s.path('b67-again/step_00000000'))['weights'].items()
        ),
        'B67: and can be started from',
    )
    s.go('b67-half', steps=1, model={'init_from': s.path('b67-bfloat16')}, checkpoint=FIRST)
    tap.ok(
        all(
            np.array_equal(bf16(v), safetensors(s.path('b67-bfloat16/model.safetensors'))[k])
            for k, v in whole(s.path('b67-half/step_00000000'))['weights'].items()
        ),
        'B67: a bfloat16 folder is read exactly',
    )


def full(tap, s):
    """B37 for the export: a full disk leaves nothing under the final name."""
    name = 'B37: an export onto a full disk is refused and leaves nothing'
    disk = s.path('disk')
    os.mkdir(disk)
    if (
        os.geteuid()
        or subprocess.run(
            ['mount', '-t', 'tmpfs', '-o', 'size=200k', 'none', disk], capture_output=True
        ).returncode
    ):
        tap.ok(True, name + ' # SKIP no tmpfs')
        return
    try:
        r = merge(s.path('b67/step_00000000'), disk + '/out')
        tap.ok(
            r.returncode == 3 and 'No space left' in r.stderr and disk in r.stderr and not os.listdir(disk),
            f'{name}: {last(r)} {os.listdir(disk)}',
        )
    finally:
        subprocess.run(['umount', '-l', disk])


def main():
    tap, s = Tap(), Scene('export')
    for part in (b61, b63, b65, b67, full):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
