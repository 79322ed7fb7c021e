"""Situations that went wrong in other programs, as experiments: documents that see each other, samples off by one, empty or
small validation data, and validation that depends on the layout."""

import os, shutil, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

EMBED = 'model.embed_tokens.weight'
STILL = {'learning_rate': 0.0}  # validation of the initial weights


# ---- H: data ----


def b45(tap, s):
    """A | B in one sequence: A of tokens 0..127, B of 128..255. Every label of A is a document's first token in 'lone', so that
    only B counts."""
    rng = np.random.default_rng(5)
    for S, cut in ((64, 31), (61, 1), (64, 60)):
        b = rng.integers(128, 256, S + 1 - cut)
        both = [np.concatenate([rng.integers(0, 128, cut), b]) for _ in range(2)]
        lone, pair = list(range(cut + 1)), [0, cut]

        def one(name, ids, documents, mask=True, S=S, **layout):
            data = {
                'train': token_file(s.path(f'b45-{name}.h5'), ids, documents),
                'shuffle': False,
                'document_mask': mask,
            }
            layout_name = f'b45-{name}-{S}-{cut}-' + '-'.join(f'{k}{v}' for k, v in layout.items())
            extra = layout.pop('backend', 'auto')
            shutil.rmtree(s.path(layout_name), ignore_errors=True)
            s.go(
                layout_name,
                steps=1,
                seq=S,
                batch=1,
                data=data,
                parallel=layout,
                debug={'backend': extra},
                optim={'clip_grad': 0.0},
                checkpoint={'interval': 1},
            )
            m = metrics(s.path(layout_name))[0]
            return m['loss'], m['valid_tokens'], s.path(layout_name, 'step_00000001')

        for name, layout in [('one rank', {}), ('reference', {'backend': 'reference'})] + (
            [('tp 2', {'tp': 2})] if S % 2 == 0 else []
        ):

            def body():
                x, y = (one('lone', ids, lone, **layout) for ids in both)
                if x[1] != S - cut:
                    return f'{x[1]} labels count, not {S - cut}'
                if x[0] != y[0]:
                    return f'the loss of B changes with A: {x[0]!r}, {y[0]!r}'
                g = whole(x[2])['exp_avg'][EMBED]
                if np.any(g[:128]):
                    return 'tokens of A have a gradient from the loss of B'
                if not np.any(g[128:]):
                    return 'B has no gradient'
                return ''

            attempt(tap, f'B45: B does not see A, {S} tokens cut at {cut}, {name}', body)
        la, na, _ = one('pair', both[0], pair)
        lb, nb, _ = one('alone', b, [0], S=S - cut)
        if cut > 1:
            head, nh, _ = one('head', np.append(both[0][:cut], 0), [0, cut], S=cut)
            tap.ok(
                (na, nb, nh) == (S - 1, S - cut, cut - 1) and relative(la * na, lb * nb + head * nh) < 1e-6,
                f'B45: the loss is that of A and of B alone, {S} cut at {cut}',
            )
        else:
            tap.ok(
                na == nb == S - 1 and relative(la, lb) < 1e-6,
                f'B45: the loss is that of B alone, {S} cut at {cut}',
            )
        free, other = one('free', both[0], None, mask=False), one('free', both[1], None, mask=False)
        tap.ok(
            np.any(whole(free[2])['exp_avg'][EMBED][:128]) and free[0] != other[0] and free[1] == S,
            f'B45: without the mask it does, {S} cut at {cut}',
        )


def b49(tap, s):
    """Token i is i: how many samples there are, and which tokens they hold."""
    for n, samples in ((64, 7), (65, 8), (66, 8), (72, 8), (73, 9)):
        data = token_file(s.path('b49.h5'), range(n))
        r = s.go(
            f'b49-{n}',
            seq=8,
            steps=1,
            batch=8,
            parallel={'dp': 4},
            train={'micro_batch_size': 2},
            data={'train': data, 'shuffle': False},
            checkpoint={'interval': 1},
        )
        used = whole(s.path(f'b49-{n}', 'step_00000001'))['exp_avg'][EMBED].any(axis=1)
        want = np.zeros(256, bool)
        want[: 8 * min(samples, 8)] = True  # an eighth sample of 64 tokens is the first again
        tap.ok(
            f' {samples} samples' in r.stdout and np.array_equal(used, want),
            f'B49: {n} tokens are {samples} samples of 8',
        )
    data = token_file(s.path('b49-few.h5'), range(25))
    r = s.go('b49-few', seq=8, steps=2, batch=8, parallel={'dp': 4}, data={'train': data, 'shuffle': False})
    tap.ok(
        '3 samples; 2 steps are 5.33 epochs' in r.stdout
        and [m['valid_tokens'] for m in metrics(s.path('b49-few'))] == [64, 64],
        'B49: three samples for steps of eight: repeated, and said',
    )
    data = token_file(s.path('b49-none.h5'), range(8))
    attempt(
        tap,
        'B49: less than one sample is refused',
        lambda: expect(
            s.go('b49-none', seq=8, check=False, parallel={'dp': 4}, data={'train': data}), 3, 'b49-none.h5'
        ),
    )
    s.go('b49-one', seq=8, steps=2, batch=1, data={'train': token_file(s.path('b49-one.h5'), range(9))})
    tap.ok(len(s.losses('b49-one')) == 2, 'B49: exactly one sample is enough')


def b51(tap, s):
    attempt(
        tap,
        'B51: evaluation without validation data is refused at the start',
        lambda: expect(
            s.go('b51', ranks=2, check=False, eval={'interval': 100}, steps=200),
            2,
            'needs `validation` in &data',
        ),
    )
    attempt(
        tap,
        'B51: validation data without a whole sample is refused at the start',
        lambda: expect(
            s.go(
                'b51',
                ranks=2,
                check=False,
                eval={'interval': 100},
                steps=200,
                data={'validation': token_file(s.path('v.h5'), range(16))},
            ),
            3,
            'v.h5',
        ),
    )
    tap.ok(not os.path.exists(s.path('b51')), 'B51: nothing was written')
    one = token_file(s.path('one.h5'), range(17))
    s.go(
        'b51-one',
        steps=1,
        batch=8,
        parallel={'dp': 2},
        train={'micro_batch_size': 2},
        data={'validation': one},
        eval={'interval': 1},
        optim=STILL,
    )
    s.go('b51-train', steps=1, batch=1, data={'train': one}, optim=STILL)
    tap.ok(
        relative(metrics(s.path('b51-one'))[0]['validation_loss'], metrics(s.path('b51-train'))[0]['loss'])
        < 1e-6,
        'B51: one validation sample for 2 replicas x 2 sequences counts once',
    )


# ---- K: evaluation ----


def b69(tap, s):
    """Ten documents, 202 tokens: 12 samples of 16 and a rest."""
    lengths = [1, 2, 3, 5, 8, 13, 21, 34, 55, 60]
    validation = token_file(s.path('b69.h5'), random_ids(202, seed=6), np.cumsum([0] + lengths[:-1]))
    kw = dict(steps=2, optim=STILL, eval={'interval': 1, 'batches': 8})
    for masked in (False, True):
        losses = {}
        data = {'validation': validation, 'document_mask': masked}
        layouts = [
            ('one rank', {}, 1),
            ('micro-batch 3', {}, 3),
            ('micro-batch 12', {}, 12),
            ('dp 2', {'dp': 2}, 1),
            ('dp 3', {'dp': 3}, 4),
            ('dp 4', {'dp': 4}, 3),
            ('tp 2', {'tp': 2}, 2),
            ('pp 2', {'pp': 2}, 1),
            ('pp 3', {'pp': 3}, 4),
            ('dp 2, pp 2', {'dp': 2, 'pp': 2}, 6),
        ]
        for name, layout, mb in layouts if not masked else layouts[:1] + layouts[3:8:2]:
            s.go(
                f'b69 {masked} {name}',
                batch=12,
                parallel=layout,
                train={'micro_batch_size': mb},
                data=data,
                **kw,
            )
            losses[name] = metrics(s.path(f'b69 {masked} {name}'))[0]['validation_loss']
        for batches, batch in ((3, 4), (2, 8), (1, 12), (9, 1)):  # 12 samples as 3 x 4, 8 + 4 of 8; only 9
            s.go(
                f'b69 {masked} {batches}x{batch}',
                batch=batch,
                data=data,
                **{**kw, 'eval': {'interval': 1, 'batches': batches}},
            )
            losses[f'{batches} batches of {batch}'] = metrics(s.path(f'b69 {masked} {batches}x{batch}'))[0][
                'validation_loss'
            ]
        nine = losses.pop('9 batches of 1')
        off = {k: relative(v, losses['one rank']) for k, v in losses.items()}
        tap.ok(
            max(off.values()) < 1e-6,
            f'B69: one validation loss in {len(off)} layouts and batches, documents masked: {masked} ({max(off.values()):.1e})',
        )
        if not masked:
            tap.ok(losses['pp 2'] == losses['one rank'], 'B69: to the bit over pp')
        tap.ok(
            relative(nine, losses['one rank']) > 1e-6, 'B69: eval.batches bounds how many samples are taken'
        )
        s.go(
            f'b69-train {masked}',
            steps=1,
            batch=12,
            data={'train': validation, 'shuffle': False, 'document_mask': masked},
            optim=STILL,
        )
        m = metrics(s.path(f'b69-train {masked}'))[0]
        seams = sum(0 < p <= 192 for p in np.cumsum(lengths[:-1])) if masked else 0
        tap.ok(
            relative(losses['one rank'], m['loss']) < 1e-6 and m['valid_tokens'] == 192 - seams,
            f'B69: it is the mean over {192 - seams} labels, as in training',
        )
    train = dict(steps=4, data={'validation': validation})
    s.go('b69-with', eval={'interval': 1, 'batches': 3}, **train)
    s.go('b69-without', steps=4)
    tap.ok(s.losses('b69-with') == s.losses('b69-without'), 'B69: evaluation changes nothing in training')
    s.go('b69-with', **{**train, 'steps': 5}, eval={'interval': 3})
    m = metrics(s.path('b69-with'))
    tap.ok('validation_loss' in m[-1], 'B69: also after the last step')


def main():
    tap, s = Tap(), Scene('data')
    for part in (b45, b49, b51, b69):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
