"""Golden runs: seven models, ten AdamW steps, against a float64 reference that was checked with transformers.

One line per case, layout and schedule: every layout that divides, in float32 and on the reference backend in float64."""
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
from harness import Tap, Case, CASES, work, run, metrics, merged, safetensors, relative, last

# quantity: (float32, float64): sums over V and T in another order; Adam divides small gradients by themselves
TOLERANCE = {'loss': (2e-6, 1e-12), 'grad_norm': (5e-6, 1e-11), 'learning_rate': (1e-12, 1e-12),
             'weights_rms': (1e-6, 1e-11), 'weights_max': (3e-4, 1e-7), 'gradient': (2e-5, 1e-6)}
CUBE = [(dp, tp, pp) for dp in (1, 2) for tp in (1, 2) for pp in (1, 2)]
LINES = [(1, 4, 1), (1, 1, 4), (4, 1, 1), (3, 1, 1), (1, 1, 3), (4, 1, 4)]
SCHEDULES = [('gpipe', 2, 1), ('zb-h1', 2, 1), ('zb-h1', 3, 1), ('gpipe', 4, 1), ('zb-h1', 4, 1), ('interleaved', 2, 2)]


def compare(case, directory, column):
    """-> what falls short, as text"""
    e, m, out = case.expected, metrics(directory), []
    if len(m) != e['steps']: return [f'{len(m)} steps']
    for key in ('loss', 'grad_norm', 'learning_rate'):
        worst = max(relative(a[key], b[key]) for a, b in zip(m, e['float64']))
        if not worst <= TOLERANCE[key][column]: out.append(f'{key} {worst:.1e}')
    if [a['valid_tokens'] for a in m] != [b['valid_tokens'] for b in e['float64']]: out.append('counted labels')
    w, ref = merged(directory), safetensors(case.dir + '/final.safetensors')
    if set(w) != set(ref): return out + ['names differ']
    d = np.concatenate([(w[k].astype(np.float64) - ref[k]).ravel() for k in ref])
    rms, most = np.sqrt((d * d).mean()), abs(d).max()
    if not rms <= TOLERANCE['weights_rms'][column]: out.append(f'weights rms {rms:.1e}')
    if not most <= TOLERANCE['weights_max'][column]: out.append(f'weights max {most:.1e}')
    return out


def one(tap, case, folder, dp, tp, pp, dtype='float32', schedule='1f1b', chunks=1):
    name = f'{case.name} {dtype} dp {dp} tp {tp} pp {pp} {schedule}'
    d = os.path.join(folder, name.replace(' ', '-'))
    more = {'virtual_stages': chunks} if chunks > 1 else {}
    r = run(['pretrain', case.deck(d, dp, tp, pp, dtype, schedule=schedule, **more)], n=dp * tp * pp)
    why = [f'exit {r.returncode}: {last(r)}'] if r.returncode else compare(case, d, dtype == 'float64')
    tap.ok(not why, name + (': ' + ', '.join(why) if why else ''))


def gradients(tap, case, folder, dp, tp, pp):
    """Step 1's gradient from the first moment: exp_avg = (1 - beta1) clip g."""
    import h5py
    name = f'{case.name} gradients dp {dp} tp {tp} pp {pp}'
    d = os.path.join(folder, name.replace(' ', '-'))
    r = run(['pretrain', case.deck(d, dp, tp, pp, steps=1, optim={'clip_grad': 0.0, 'warmup_steps': 0})], n=dp * tp * pp)
    if not tap.ok(r.returncode == 0, name + ' runs' + (': ' + last(r) if r.returncode else '')): return
    want = safetensors(case.dir + '/gradient1.safetensors'); worst = 0
    with h5py.File(d + '/step_00000001/index.h5', 'r') as f:
        for k, g in want.items():
            have = f['exp_avg/' + k][...].astype(np.float64) / (1 - case.expected['optimizer']['adam_beta1'])
            worst = max(worst, np.linalg.norm(have - g) / np.linalg.norm(g))
    tap.ok(worst <= TOLERANCE['gradient'][0], f'{name}: {worst:.1e}')


def main():
    tap, folder = Tap(), work('golden')
    cases = [Case(c, folder) for c in CASES]
    for case in cases:
        for layout in CUBE + LINES:
            for dtype in ('float32', 'float64'):
                if case.fits(*layout): one(tap, case, folder, *layout, dtype=dtype)
        for layout in ((1, 1, 1), (2, 2, 2)):
            gradients(tap, case, folder, *layout)
        for schedule, pp, chunks in SCHEDULES:
            one(tap, case, folder, 1, 1, pp, schedule=schedule, chunks=chunks)
    tap.done()


if __name__ == '__main__': main()
