"""The two laws: layout (doc/design.md, section 7) and restart. python laws.py layout|restart

layout   ten steps of qwen3, tied and five: pp, schedule, zero 0 and 1 bit-equal (loss, gradient norm, digest of the checkpoint);
         tp, dp within rounding of one rank.
restart  20 steps = 10 + resume + 10 to the bit; a checkpoint of any layout goes on in any other: equal digest before the next step,
         next loss within 2e-6.
CI: three models, 20 pairs. PRETRAIN_SOAK=1: all models, all pairs."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
from harness import Tap, Case, CASES, SOAK, work, run, metrics, relative, last, newest

LOSS = {'float32': 2e-6, 'float64': 1e-12}      # tp and dp sum in another order
# what must be bit-equal to the first of its group
GROUPS = [
    [('one rank', {}), ('pp2', dict(pp=2)), ('pp3', dict(pp=3)), ('pp4', dict(pp=4)), ('ends alone', dict(pp='most')),
     ('gpipe', dict(pp=2, schedule='gpipe')), ('gpipe4', dict(pp=4, schedule='gpipe')), ('zb-h1', dict(pp=3, schedule='zb-h1')),
     ('zb-h1 of one', dict(pp=1, schedule='zb-h1')), ('interleaved', dict(pp=2, schedule='interleaved', virtual_stages=2)),
     ('interleaved of one', dict(pp=1, schedule='interleaved', virtual_stages=3)), ('by hand', dict(pp=2, layers_per_stage='hand'))],
    [('dp2 zero 0', dict(dp=2, zero_stage=0)), ('dp2 zero 1', dict(dp=2, zero_stage=1)), ('dp2 pp2', dict(dp=2, pp=2)),
     ('dp2 pp2 zero 0', dict(dp=2, pp=2, zero_stage=0)), ('dp2 pp2 zb-h1', dict(dp=2, pp=2, schedule='zb-h1'))],
    [('dp3', dict(dp=3, zero_stage=0)), ('dp3 zero 1', dict(dp=3))],
    [('tp2', dict(tp=2)), ('tp2 pp2', dict(tp=2, pp=2)), ('tp2 pp2 gpipe', dict(tp=2, pp=2, schedule='gpipe'))],
    [('dp2 tp2', dict(dp=2, tp=2)), ('dp2 tp2 pp2', dict(dp=2, tp=2, pp=2)), ('dp2 tp2 zero 0', dict(dp=2, tp=2, zero_stage=0))],
    [('tp4', dict(tp=4)), ('tp4 pp2', dict(tp=4, pp=2))],
    [('dp4', dict(dp=4)), ('dp4 pp2', dict(dp=4, pp=2))],
]


def settle(case, layout):
    L = case.config['num_hidden_layers']
    out = dict(layout)
    if out.get('pp') == 'most': out['pp'] = L + 2
    if 'layers_per_stage' in out: out['layers_per_stage'] = [1, L - 1]
    return out


def train(case, folder, name, layout, steps=10, dtype='float32', check=True, **more):
    d = os.path.join(folder, f'{case.name}-{dtype}-{name}'.replace(' ', '-'))
    kw = settle(case, layout)
    run_keys = {'threads': 1, **more.pop('run', {})}
    r = run(['pretrain', case.deck(d, steps=steps, dtype=dtype, run=run_keys, data={'shuffle': True, **more.pop('data', {})}, **kw, **more)],
            n=kw.get('dp', 1) * kw.get('tp', 1) * kw.get('pp', 1))
    if r.returncode and check: raise RuntimeError(f'{name}: {last(r)}')
    return d


def digest(checkpoint):
    r = run(['pretrain-ckpt', 'digest', checkpoint])
    if r.returncode: raise RuntimeError('digest: ' + last(r))
    return r.stdout.split()[0]


def numbers(d): return [(m['loss'], m['grad_norm'], m['valid_tokens']) for m in metrics(d)]


def attempt(tap, name, body):
    """body() -> '' if the promise holds, else why not."""
    try: why = body()
    except Exception as x: why = f'{type(x).__name__}: {x}'
    tap.ok(not why, name + (': ' + why if why else ''))


def layout_law(tap, folder):
    for case in [Case(c, folder) for c in (CASES if SOAK else ['qwen3', 'tied', 'five'])]:
        base = {t: train(case, folder, 'base', {}, dtype=t) for t in LOSS}
        for group in GROUPS:
            first = None
            for name, layout in group:
                kw = settle(case, layout)
                if not case.fits(kw.get('dp', 1), kw.get('tp', 1), kw.get('pp', 1)): continue

                def bits():
                    nonlocal first
                    d = train(case, folder, name, layout)
                    mine = numbers(d), digest(newest(d))
                    first = first or mine
                    off = max(relative(a[0], b[0]) for a, b in zip(mine[0], numbers(base['float32'])))
                    if mine != first: return 'not bit-equal to ' + group[0][0]
                    return '' if len(mine[0]) == 10 and off <= LOSS['float32'] else f'loss off by {off:.1e}'
                attempt(tap, f'{case.name} {name}', bits)
            layout = group[-1][1]

            def wide():
                d = train(case, folder, group[-1][0], layout, dtype='float64')
                off = max(relative(a[0], b[0]) for a, b in zip(numbers(d), numbers(base['float64'])))
                return '' if off <= LOSS['float64'] else f'loss off by {off:.1e}'
            if case.fits(*(settle(case, layout).get(k, 1) for k in ('dp', 'tp', 'pp'))):
                attempt(tap, f'{case.name} {group[-1][0]} float64', wide)


LAYOUTS = [dict(), dict(dp=2, pp=2), dict(dp=3), dict(tp=2, pp=3), dict(tp=4), dict(dp=4, zero_stage=0), dict(dp=2, tp=2, pp=2),
           dict(pp=2, schedule='interleaved', virtual_stages=2), dict(pp=6), dict(dp=2, tp=2)]


def restart_law(tap, folder):
    for case in [Case(c, folder) for c in (CASES if SOAK else ['tied', 'qwen3'])]:
        keep = {'interval': 10, 'keep_last': 9}
        fitting = [l for l in LAYOUTS if case.fits(l.get('dp', 1), l.get('tp', 1), l.get('pp', 1))]
        pairs = [(i, (i + k) % len(fitting)) for k in range(1, len(fitting)) for i in range(len(fitting))]
        ten = {}
        for i, layout in enumerate(fitting):
            ten[i] = train(case, folder, f'ten{i}', layout, **constant(case, checkpoint=keep))
        for i in (1, len(fitting) - 1):
            def whole():
                d = train(case, folder, f'whole{i}', fitting[i], steps=20, **constant(case, checkpoint=keep))
                train(case, folder, f'ten{i}', fitting[i], steps=20, run={'resume': 'auto'}, **constant(case, checkpoint=keep))
                if numbers(d) != numbers(ten[i]): return 'metrics differ'
                return '' if digest(d + '/step_00000020') == digest(ten[i] + '/step_00000020') else 'digests differ'
            attempt(tap, f'{case.name} 20 = 10 + 10 in {fitting[i]}', whole)
        truth = numbers(train(case, folder, 'truth', {}, steps=11, **constant(case)))[10][0]
        for a, b in pairs if SOAK else pairs[:10]:
            def pair():
                start = ten[a] + '/step_00000010'
                d = train(case, folder, f'from{a}to{b}', fitting[b], steps=11, run={'resume': start},
                          **constant(case, checkpoint={'save_initial': True, 'keep_last': 9}))
                if digest(start) != digest(d + '/step_00000010'): return 'digest changed'
                m = metrics(d)
                if [x['step'] for x in m] != [11]: return f'steps {[x["step"] for x in m]}'
                off = relative(m[0]['loss'], truth)
                return '' if off <= LOSS['float32'] else f'next loss off by {off:.1e}'
            attempt(tap, f'{case.name} {fitting[a]} -> {fitting[b]}', pair)


def constant(case, **more):
    """Decks whose learning rate does not depend on train_steps. The corpus wraps after step 10."""
    o = {k: v for k, v in case.expected['optimizer'].items() if k != 'min_lr_ratio'}
    case.expected['optimizer'] = o
    return {'optim': {'lr_schedule': 'constant'}, **more}


def main():
    tap = Tap()
    law = {'layout': layout_law, 'restart': restart_law}[sys.argv[1]]
    law(tap, work('law-' + sys.argv[1]))
    tap.done()


if __name__ == '__main__': main()
