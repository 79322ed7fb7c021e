"""bfloat16 and float16: close to the float64 golden runs, bit-equal over pipelines, schedules, ZeRO stages and restarts, and gradient
sums that do not saturate. The cpu backend in full, the reference in a few of these.
PRETRAIN_SOAK=1: the reference in full too."""
import copy, os, struct, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
from harness import Tap, Case, CASES, SOAK, work, run, metrics, relative, last, newest
from laws import attempt, constant, digest, numbers, train

# doc/design.md, section 7: loss and gradient norm of step 1, loss after ten steps
FIRST_LOSS, FIRST_NORM, LAST_LOSS = 2e-3, 1e-2, 1e-2
WORST = {}    # kind -> what was seen
GOLDEN = [{}, dict(tp=2), dict(dp=2, tp=2, pp=2)]
GROUPS = [
    [{}, dict(pp=2), dict(pp=3, schedule='zb-h1'), dict(pp=2, schedule='interleaved', virtual_stages=2)],
    [dict(dp=2, zero_stage=0), dict(dp=2), dict(dp=2, pp=2)],
    [dict(tp=2), dict(tp=2, pp=2)],
]


# a scale that neither overflows nor leaves much of the gradient to subnormal numbers
SCALE = {'bfloat16': {}, 'float16': {'loss_scale_init': 4096.0}}


class Kind:
    """A type on a backend: train() with both."""
    def __init__(self, dtype, backend, folder):
        self.dtype, self.backend, self.folder = dtype, backend, folder

    def __str__(self): return f'{self.dtype}, {self.backend}'

    def train(self, case, name, layout, train_keys=None, **more):
        return train(case, self.folder, f'{self.backend} {name}', layout, dtype=self.dtype, train={**SCALE[self.dtype], **(train_keys or {})},
                     debug={'backend': self.backend}, **more)


def golden(kind, case, layout):
    d = kind.train(case, f'golden {layout}', layout, data={'shuffle': False})
    m, f = metrics(d), case.expected['float64']
    if any(x.get('skipped') for x in m): return 'a step was skipped'
    first, norm, end = (relative(m[i][k], f[i][k]) for i, k in ((0, 'loss'), (0, 'grad_norm'), (-1, 'loss')))
    if [x['valid_tokens'] for x in m] != [x['valid_tokens'] for x in f]: return 'counted labels'
    WORST.setdefault(str(kind), []).append((first, norm, end))
    return '' if first <= FIRST_LOSS and norm <= FIRST_NORM and end <= LAST_LOSS else f'{first:.1e} {norm:.1e} {end:.1e}'


def same_bits(kind, case, group):
    seen = []
    for layout in group:
        d = kind.train(case, f'bits {layout}', layout)
        seen.append((numbers(d), digest(newest(d))))
    return '' if all(x == seen[0] for x in seen) else 'differ in ' + ', '.join(str(l) for l, x in zip(group, seen) if x != seen[0])


def restart(kind, case, layout):
    keep = constant(case, checkpoint={'interval': 10, 'keep_last': 9})
    whole = kind.train(case, f'whole {layout}', layout, steps=20, **keep)
    parts = kind.train(case, f'parts {layout}', layout, steps=10, **keep)
    kind.train(case, f'parts {layout}', layout, steps=20, run={'resume': 'auto'}, **keep)
    if numbers(whole) != numbers(parts): return 'metrics differ'
    return '' if digest(newest(whole)) == digest(newest(parts)) else 'digests differ'


def apart(case):
    """A copy whose optimizer keys may be changed."""
    case = copy.copy(case)
    case.expected = dict(case.expected)
    return case


def saturation(kind, case):
    """1,024 identical micro-batches have the gradient of one: sums are float32."""
    S, name = case.expected['sequence_length'], os.path.join(kind.folder, 'same')
    with open(name + '.u16', 'wb') as f:
        f.write(struct.pack(f'<{1025 * S + 1}H', *((i % S * 7 + 3) % 100 for i in range(1025 * S + 1))))
    r = run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', case.config['vocab_size'], '--eod', -1,
             '-o', name + '.h5', name + '.u16'])
    if r.returncode: return last(r)
    norm, optim = [], constant(case)['optim']
    for batch in (1, 1024):
        scale = {'loss_scale_init': 16.0 * batch} if kind.dtype == 'float16' else {}
        d = kind.train(case, f'same {batch}', {}, steps=1, train_keys={'global_batch_size': batch, **scale},
                       data={'train': name + '.h5', 'shuffle': False}, optim={**optim, 'warmup_steps': 0})
        norm.append(metrics(d)[0]['grad_norm'])
    return '' if relative(norm[1], norm[0]) <= 1e-3 else f'{norm}'


def laws(tap, kind, cases, goldens, groups, restarts):
    for name in goldens:
        for layout in GOLDEN:
            attempt(tap, f'{kind}: {name} {layout} near the golden run', lambda: golden(kind, cases[name], layout))
    for name in groups:
        for group in GROUPS:
            if all(cases[name].fits(*(l.get(k, 1) for k in ('dp', 'tp', 'pp'))) for l in group):
                attempt(tap, f'{kind}: {name} bit-equal in {group}', lambda: same_bits(kind, cases[name], group))
    for name, layout in restarts:
        attempt(tap, f'{kind}: {name} 20 = 10 + 10 in {layout}', lambda: restart(kind, apart(cases[name]), layout))
    attempt(tap, f'{kind}: 1,024 identical micro-batches have the gradient of one', lambda: saturation(kind, apart(cases['gqa'])))


def main():
    tap, folder = Tap(), work('sixteen')
    cases = {c: Case(c, folder) for c in CASES}
    full = CASES, ('tied', 'qwen3'), [(c, l) for c in ('tied', 'qwen3') for l in (dict(dp=2, pp=2), dict(dp=2, tp=2))]
    few = ('tied', 'bias'), ('tied',) if SOAK else (), [('qwen3', dict(dp=2, tp=2))]
    for dtype in ('bfloat16', 'float16'):
        laws(tap, Kind(dtype, 'cpu', folder), cases, *(full if dtype == 'bfloat16' or SOAK else few))
        laws(tap, Kind(dtype, 'reference', folder), cases, *(full if SOAK else few))
    for kind, seen in WORST.items():
        print(f'# {kind}: within', *(f'{x:.1e}' for x in map(max, zip(*seen))), 'of the golden loss and gradient norm of step 1, loss after ten')
    tap.done()


if __name__ == '__main__': main()
