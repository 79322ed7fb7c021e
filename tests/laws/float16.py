"""float16 and its loss scale: an overflow skips the step, changes no weight or moment and lowers the scale, alike in every layout and
through a restart; what only lowering the scale cannot cure ends the run."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
import h5py
from harness import Tap, Case, work, metrics, relative, last, newest, run
from laws import attempt, constant, digest, numbers, train

STEPS, WARMUP = 14, 5
HIGH = 2.0 ** 24        # gradients of the logits overflow at 65,504
LAYOUTS = [{}, dict(pp=2), dict(dp=2, zero_stage=0), dict(dp=2), dict(tp=2), dict(dp=2, tp=2, pp=2)]


def scaled(case, folder, name, layout, steps=STEPS, **more):
    keys = {'loss_scale_init': HIGH, 'loss_scale_growth_interval': 5, 'loss_scale_hysteresis': 1, **more.pop('train', {})}
    return train(case, folder, name, layout, steps=steps, dtype='float16', train=keys, **more)


def scalars(folder):
    with h5py.File(os.path.join(folder, 'index.h5'), 'r') as f:
        return {k: f.attrs[k].item() if hasattr(f.attrs[k], 'item') else f.attrs[k]
                for k in ('adam_t', 'step', 'loss_scale', 'loss_scale_good_steps', 'loss_scale_tolerance')}


def tensors(folder):
    out = {}
    with h5py.File(os.path.join(folder, 'index.h5'), 'r') as f:
        f.visititems(lambda name, x: out.update({name: x[()].tobytes()}) if isinstance(x, h5py.Dataset) and x.ndim else None)
    return out


def rule(m, interval=5, hysteresis=1, backoff=0.5, first=HIGH):
    """'' if the metrics follow the documented rule."""
    scale, good, left, real = first, 0, hysteresis - 1, 0
    for x in m:
        if x['loss_scale'] != scale: return f"step {x['step']}: scale {x['loss_scale']}, should be {scale}"
        if x['loss'] is None: return f"step {x['step']}: no loss"
        if x.get('skipped'):
            if x['grad_norm'] is not None: return 'the norm of an overflow is a number'
            good = 0
            if left: left -= 1
            else: scale = max(1, scale * backoff)
            continue
        good, real = good + 1, real + 1
        if good == interval: scale, good, left = scale * 2, 0, hysteresis - 1
    return ''


def overflow(case, folder, layout, seen):
    d = scaled(case, folder, f'scale {layout}', layout, checkpoint={'interval': 1, 'keep_last': 99, 'save_initial': True})
    m = metrics(d)
    skipped = [x['step'] for x in m if x.get('skipped')]
    if not skipped or skipped[0] != 1 or len(skipped) > STEPS - 5: return f'skipped {skipped}'
    why = rule(m)
    if why: return why
    steps = sorted(x for x in os.listdir(d) if x.startswith('step_'))
    before, after = (tensors(os.path.join(d, steps[skipped[0] - 1 + i])) for i in (0, 1))
    if before != after: return 'a skipped step changed a tensor'
    t = scalars(os.path.join(d, steps[-1]))
    if t['adam_t'] != STEPS - len(skipped) or t['step'] != STEPS: return f'{t}'
    rates = [x['learning_rate'] for x in m]
    e = case.expected['optimizer']
    if any(abs(r - e['learning_rate'] * min(1, (i + 1) / WARMUP)) > 1e-12 for i, r in enumerate(rates)): return f'learning rates {rates}'
    seen.append((skipped, [x['loss_scale'] for x in m]))
    return '' if seen[0] == seen[-1] else f'{seen[-1]} differs from {seen[0]}'


def restart(case, folder, layout):
    """Through the first overflows: 7 + 7 = 14, and the counters of the scale too."""
    whole = scaled(case, folder, f'whole {layout}', layout, checkpoint={'keep_last': 9})
    parts = scaled(case, folder, f'parts {layout}', layout, steps=7)
    scaled(case, folder, f'parts {layout}', layout, run={'resume': 'auto'})
    if numbers(whole) != numbers(parts): return 'metrics differ'
    if scalars(newest(whole)) != scalars(newest(parts)): return 'scalars differ'
    return '' if digest(newest(whole)) == digest(newest(parts)) else 'digests differ'


def scale_free(case, folder):
    """Powers of two change no bit of the gradient while nothing under- or overflows."""
    a, b = (metrics(scaled(case, folder, f'init {s}', {}, steps=3, optim={'warmup_steps': 0}, train={'loss_scale_init': s, 'loss_scale_growth_interval': 99})) for s in (1024.0, 2048.0))
    off = max(relative(x['grad_norm'], y['grad_norm']) for x, y in zip(a, b))
    if any(x.get('skipped') for x in a + b): return 'skipped'
    return '' if off < 1e-4 and a[0]['loss'] == b[0]['loss'] else f'{off:.1e}'


def hysteresis(case, folder):
    m = metrics(scaled(case, folder, 'hysteresis', {}, train={'loss_scale_hysteresis': 3, 'loss_scale_backoff': 0.25}))
    if not all(x.get('skipped') for x in m[:3]): return 'no overflow at first'
    return rule(m, hysteresis=3, backoff=0.25)


def hopeless(case, folder, layout):
    """Weights that no scale can help: every step overflows until the run ends with 4, and the last checkpoint is the first."""
    keep = constant(case)
    name = f'hopeless {layout}'
    try: scaled(case, folder, name, layout, steps=60, optim={**keep.get('optim', {}), 'learning_rate': 1e3, 'clip_grad': 0.0, 'warmup_steps': 0, 'lr_schedule': 'constant'})
    except RuntimeError: pass
    d = os.path.join(folder, f'{case.name}-float16-{name}'.replace(' ', '-'))
    with open(os.path.join(d, 'RUN_FAILED')) as f: text = f.read()
    return '' if text.startswith('code 4') and ('not finite' in text or 'stopped before the update' in text) else text


def main():
    tap, folder = Tap(), work('float16')
    cases = {c: Case(c, folder) for c in ('gqa', 'tied')}
    for name, case in cases.items():
        case.expected['optimizer'] = {k: v for k, v in case.expected['optimizer'].items() if k not in ('min_lr_ratio', 'warmup_steps', 'lr_schedule')}
        more = {'warmup_steps': WARMUP, 'lr_schedule': 'constant'}
        case.expected['optimizer'].update(more)
        seen = []
        for layout in LAYOUTS if name == 'gqa' else LAYOUTS[:2]:
            attempt(tap, f'{name} {layout}: overflows skip steps, lower the scale, change nothing', lambda: overflow(case, folder, layout, seen))
        for layout in [{}, dict(dp=2, tp=2, pp=2)] if name == 'gqa' else [dict(pp=2)]:
            attempt(tap, f'{name} {layout}: 14 = 7 + 7', lambda: restart(case, folder, layout))
    attempt(tap, 'the gradient does not depend on the scale', lambda: scale_free(cases['gqa'], folder))
    attempt(tap, 'hysteresis and backoff', lambda: hysteresis(cases['gqa'], folder))
    for layout in ({}, dict(dp=2, pp=2)):
        attempt(tap, f'{layout}: what diverges ends with code 4', lambda: hopeless(cases['gqa'], folder, layout))
    tap.done()


if __name__ == '__main__': main()
