"""Situations that went wrong in other programs, as experiments (Bnn numbers them): how losses are averaged,
tensor parallel and tied weights, initial values, clipping, and the pipeline."""

import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

# against one rank: sums in another order; weights with a large eps, for Adam divides small gradients by themselves
AGREE = {'loss': 1e-6, 'grad_norm': 1e-5, 'weights': 1e-5}
OPTIM = {'adam_eps': 1e-4}
EMBED, HEAD = 'model.embed_tokens.weight', 'lm_head.weight'


def disagree(s, name, base):
    """'' if the runs agree: step 1 in loss and norm, the weights of the newest checkpoint."""
    a, b = metrics(s.path(name)), metrics(s.path(base))
    why = [
        f'{k} off by {relative(a[0][k], b[0][k]):.1e}'
        for k in ('loss', 'grad_norm')
        if not relative(a[0][k], b[0][k]) <= AGREE[k]
    ]
    x, y = whole(newest(s.path(name)))['weights'], whole(newest(s.path(base)))['weights']
    if set(x) != set(y):
        why.append('names differ')
    else:
        worst = max(np.max(np.abs(x[k].astype(float) - y[k])) for k in x)
        if not worst <= AGREE['weights']:
            why.append(f'weights off by {worst:.1e}')
    if len(a) != len(b):
        why.append('steps differ')
    return ', '.join(why)


def starts(masked, n):
    """Document starts so that exactly the labels at these token positions do not count."""
    return sorted({0} | {p for p in masked if 0 < p < n})


# ---- A: loss normalisation ----


def b01(tap, s):
    """Two sequences: A has one counted label, B 63; as one micro-batch of two and as two of one."""
    S, ids = 64, random_ids(129)
    two = token_file(s.path('b01.h5'), ids, starts(list(range(1, 64)) + [65], 129))
    kw = dict(seq=S, steps=3, optim=OPTIM)
    stream = {'document_mask': True, 'shuffle': False}
    s.go('b01-2', batch=2, train={'micro_batch_size': 2}, data={'train': two, **stream}, **kw)
    s.go('b01-1', batch=2, data={'train': two, **stream}, **kw)
    a = token_file(s.path('b01a.h5'), ids[:65], starts(range(1, 64), 65))
    b = token_file(s.path('b01b.h5'), ids[64:], starts([1], 65))
    s.go('b01-a', batch=1, steps=1, seq=S, data={'train': a, **stream})
    s.go('b01-b', batch=1, steps=1, seq=S, data={'train': b, **stream})
    la, lb = metrics(s.path('b01-a'))[0], metrics(s.path('b01-b'))[0]
    have = metrics(s.path('b01-1'))[0]
    right, faulty = (la['loss'] + 63 * lb['loss']) / 64, (la['loss'] + lb['loss']) / 2
    tap.ok(
        (la['valid_tokens'], lb['valid_tokens'], have['valid_tokens']) == (1, 63, 64),
        'B01: 1, 63 and 64 labels count',
    )
    tap.ok(
        relative(have['loss'], right) < 1e-6 < relative(faulty, right),
        f"B01: the loss is the mean over labels ({have['loss']:.6f}, mean of means {faulty:.6f})",
    )
    attempt(tap, 'B01: micro-batch 2 x 1 and 1 x 2 agree', lambda: disagree(s, 'b01-1', 'b01-2'))
    attempt(
        tap,
        'B01: so do two replicas',
        lambda: s.go('b01-d', batch=2, parallel={'dp': 2}, data={'train': two, **stream}, **kw)
        and disagree(s, 'b01-d', 'b01-2'),
    )


def b05(tap, s):
    """Ten samples, four a step: steps cross epochs, 20 samples are 5 steps."""
    data = token_file(s.path('b05.h5'), random_ids(161))
    still = dict(data={'train': data, 'shuffle': False}, optim={'learning_rate': 0.0})
    s.go('b05-one', batch=1, steps=10, **still)
    each = [m['loss'] for m in metrics(s.path('b05-one'))]
    for name, layout in [('one rank', {}), ('dp 2', {'dp': 2})]:
        s.go('b05' + name, batch=4, steps=5, parallel=layout, **still)
        m = metrics(s.path('b05' + name))
        want = [np.mean([each[n % 10] for n in range(4 * i, 4 * i + 4)]) for i in range(5)]
        tap.ok(
            len(m) == 5
            and [x['samples'] for x in m] == [4, 8, 12, 16, 20]
            and max(relative(x['loss'], w) for x, w in zip(m, want)) < 1e-6,
            f'B05: the third step takes samples 8, 9, 0, 1 ({name})',
        )
    s.go(
        'b05-lr', batch=4, steps=5, data={'train': data}, optim={'lr_schedule': 'linear', 'min_lr_ratio': 0.0}
    )
    lr = [x['learning_rate'] for x in metrics(s.path('b05-lr'))]
    tap.ok(
        np.allclose(lr, [1e-3 * (1 - i / 5) for i in range(1, 6)], rtol=1e-12, atol=1e-18),
        'B05: one learning rate a step',
    )


# ---- B: tensor parallel, tied embeddings, initial values, clipping ----


def b07(tap, s):
    one = {**T0, 'num_key_value_heads': 1}
    for name, model, tps in [('2 kv heads', T0, (1, 2, 4)), ('1 kv head', one, (1, 2))]:
        for tp in tps:
            run_name = f'b07 {name} {tp}'
            s.go(run_name, seq=64, steps=3, model=model, parallel={'tp': tp}, optim=OPTIM)
            if tp > 1:
                attempt(
                    tap,
                    f'B07: {name} at tp {tp} agree with tp 1',
                    lambda: disagree(s, run_name, f'b07 {name} 1'),
                )
        k = merged(s.path(f'b07 {name} {tps[-1]}'))['model.layers.0.self_attn.k_proj.weight']
        tap.ok(
            k.shape == (16 * model['num_key_value_heads'], 64), f'B07: {name}: exported k_proj is {k.shape}'
        )
    odd = {**T0, 'hidden_size': 96, 'num_attention_heads': 6, 'num_key_value_heads': 3}
    attempt(
        tap,
        'B07: 3 kv heads at tp 2 are refused by name',
        lambda: expect(
            s.go('b07-odd', check=False, model=odd, parallel={'tp': 2}),
            2,
            'num_key_value_heads = 3',
            '`tp` = 2',
        ),
    )


def tied(tap, s):
    model = {**T0, 'tie_word_embeddings': True}
    kw = dict(seq=64, steps=3, model=model, optim=OPTIM, checkpoint={'interval': 1, 'keep_last': 9})
    s.go('b09', **kw)
    base = whole(s.path('b09/step_00000001'))
    for name, layout in [
        ('zero 1', {'dp': 2, 'pp': 2}),
        ('zero 0', {'dp': 2, 'pp': 2, 'zero_stage': 0}),
        ('tp', {'tp': 2, 'pp': 2}),
    ]:

        def body():
            s.go('b09-' + name, parallel=layout, **kw)
            one = whole(s.path('b09-' + name, 'step_00000001'))
            worst = np.max(np.abs(one['weights'][EMBED] - base['weights'][EMBED]))
            moment = np.max(np.abs(one['exp_avg'][EMBED] - base['exp_avg'][EMBED])) / np.max(
                np.abs(base['exp_avg'][EMBED])
            )
            if not (worst <= 1e-6 and moment <= 1e-5):
                return f'after step 1 off by {worst:.1e}, first moment {moment:.1e}'
            return disagree(s, 'b09-' + name, 'b09')

        attempt(tap, f'B09: tied, pp 2, {name}: element by element after step 1, and after 3', body)
    for layers, pp in ((2, 2), (3, 3)):

        def body():
            m = {**model, 'num_hidden_layers': layers}
            more = dict(model=m, checkpoint={'interval': 5, 'keep_last': 9})
            s.go(f'b11-1-{pp}', steps=10, **more)
            s.go(f'b11-{pp}', steps=10, parallel={'pp': pp}, **more)
            s.go(
                f'b11-r{pp}',
                steps=10,
                parallel={'pp': pp},
                run={'resume': s.path(f'b11-{pp}/step_00000005')},
                **more,
            )
            for step in ('step_00000005', 'step_00000010'):
                if digest(s.path(f'b11-{pp}', step)) != digest(s.path(f'b11-1-{pp}', step)):
                    return f'{step} is not that of one rank'
            if s.losses(f'b11-r{pp}') != s.losses(f'b11-{pp}')[5:]:
                return 'losses after the resume differ'
            w = merged(s.path(f'b11-{pp}'))
            return '' if HEAD not in w and EMBED in w else 'two matrices in the export'

        attempt(tap, f'B11: tied, {layers} layers on pp {pp}: one matrix, also after a resume', body)


def b13(tap, s):
    first = {}
    kw = dict(seq=64, steps=1, checkpoint={'save_initial': True, 'interval': 0})
    for name, layout in [
        ('tp 1', {}),
        ('tp 2', {'tp': 2}),
        ('tp 4', {'tp': 4}),
        ('pp 2', {'pp': 2}),
        ('dp 2', {'dp': 2}),
    ]:
        s.go('b13 ' + name, parallel=layout, **kw)
        first[name] = digest(s.path('b13 ' + name, 'step_00000000'))
    tap.ok(
        len(set(first.values())) == 1,
        f'B13: initial weights do not depend on the layout {sorted(set(first.values()))}',
    )
    w = whole(s.path('b13 tp 4', 'step_00000000'))['weights']
    loss = metrics(s.path('b13 tp 4'))[0]['loss']
    off = {
        k: v.std() / (0.02 / (2 if k.endswith(('o_proj.weight', 'down_proj.weight')) else 1)) - 1
        for k, v in w.items()
        if v.ndim == 2
    }
    tap.ok(
        max(abs(x) for x in off.values()) < 0.05,
        f'B13: standard deviations are those of the whole matrix ({max(off.values(), key=abs):+.3f})',
    )
    halves = [np.array_equal(v[: len(v) // 2], v[len(v) // 2 :]) for v in w.values() if v.ndim == 2]
    tap.ok(
        not any(halves) and all(np.all(v == 1) for k, v in w.items() if v.ndim == 1),
        'B13: no two parts of a matrix are alike; norms are 1',
    )
    tap.ok(abs(loss - np.log(256)) < 0.05, f'B13: the first loss is near ln V ({loss:.4f})')


def b15(tap, s):
    kw = dict(seq=64, steps=1, checkpoint={'interval': 1})
    for name, layout in [
        ('one rank', {}),
        ('dp 2, zero 0', {'dp': 2, 'zero_stage': 0}),
        ('dp 2, zero 1', {'dp': 2}),
        ('tp 2', {'tp': 2}),
        ('pp 2', {'pp': 2}),
    ]:

        def body():
            for how, clip in (('off', 0.0), ('small', 1e-3), ('large', 1e3)):
                s.go(f'b15-{how} {name}', parallel=layout, optim={'clip_grad': clip}, **kw)
            off, small = (
                whole(s.path(f'b15-{h} {name}', 'step_00000001'))['exp_avg'] for h in ('off', 'small')
            )
            norm = metrics(s.path(f'b15-small {name}'))[0]['grad_norm']
            if norm != metrics(s.path(f'b15-off {name}'))[0]['grad_norm']:
                return 'the reported norm is not that before clipping'
            worst = max(
                np.max(np.abs(small[k] - off[k] * (1e-3 / norm)) / (np.abs(off[k]) * 1e-3 / norm + 1e-30))
                for k in off
            )
            if not worst < 1e-4:
                return f'off by {worst:.1e}'
            return (
                ''
                if digest(s.path(f'b15-large {name}', 'step_00000001'))
                == digest(s.path(f'b15-off {name}', 'step_00000001'))
                else 'a large clip changes bits'
            )

        attempt(tap, f'B15: clipping scales every element, {name}', body)


# ---- C: pipeline ----


def b17(tap, s):
    kw = dict(steps=3, optim=OPTIM)
    for layers, pps in ((5, (2, 3, 4)), (3, (4, 5))):
        model = {**T0, 'num_hidden_layers': layers}
        s.go(f'b17-{layers}', model=model, **kw)
        for pp in pps:

            def body():
                name = f'b17-{layers}-{pp}'
                s.go(name, model=model, parallel={'pp': pp}, **kw)
                w = merged(s.path(name))
                n = sum(v.size for v in w.values())
                if n != T0_COUNT + (layers - 2) * T0_LAYER:
                    return f'{n} parameters'
                if s.losses(name) != s.losses(f'b17-{layers}'):
                    return 'not bit-equal to pp 1'
                return disagree(s, name, f'b17-{layers}')

            attempt(tap, f'B17: {layers} layers on {pp} stages are all there', body)
    attempt(
        tap,
        'B17: a split that adds up to one less is refused',
        lambda: expect(
            s.go('b17-sum', check=False, parallel={'pp': 2, 'layers_per_stage': [1, 0]}),
            2,
            'add up to 1, not to num_hidden_layers = 2',
        ),
    )


def b19(tap, s):
    S, ids = 16, random_ids(65)
    kw = dict(steps=3, optim=OPTIM)
    files = {'all': None, 'only 4': starts(range(1, 49), 65), 'not 4': starts(range(49, 65), 65)}
    for name, documents in files.items():
        data = {
            'train': token_file(s.path('b19.h5'), ids, documents),
            'shuffle': False,
            'document_mask': documents is not None,
        }
        s.go(f'b19-{name}-1', data=data, **kw)
        for schedule in ('1f1b', 'zb-h1', 'gpipe'):

            def body():
                s.go(f'b19-{name}-{schedule}', data=data, parallel={'pp': 2, 'schedule': schedule}, **kw)
                if s.losses(f'b19-{name}-{schedule}') != s.losses(f'b19-{name}-1'):
                    return 'not bit-equal to pp 1'
                return disagree(s, f'b19-{name}-{schedule}', f'b19-{name}-1')

            attempt(tap, f'B19: four micro-batches, counted: {name}, {schedule}', body)
    alone = token_file(s.path('b19-alone.h5'), ids[48:])
    s.go('b19-alone', batch=1, data={'train': alone, 'shuffle': False}, **kw)
    attempt(
        tap,
        'B19: one counted micro-batch of four is that one alone',
        lambda: disagree(s, 'b19-only 4-1f1b', 'b19-alone'),
    )


def main():
    tap, s = Tap(), Scene('parallel')
    for part in (b01, b05, b07, tied, b13, b15, b17, b19):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
