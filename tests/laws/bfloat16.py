"""bfloat16 on the reference backend: close to the float64 golden runs, bit-equal over pipelines, schedules, ZeRO stages and restarts,
and gradient sums that do not saturate."""
import os, struct, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
from harness import Tap, Case, CASES, work, run, metrics, relative, last, newest
from laws import attempt, constant, digest, numbers, train

# doc/design.md, section 7: loss and gradient norm of step 1, loss after ten steps
FIRST_LOSS, FIRST_NORM, LAST_LOSS = 2e-3, 1e-2, 1e-2
GOLDEN = [{}, dict(tp=2), dict(dp=2, tp=2, pp=2)]
GROUPS = [
    [{}, dict(pp=2), dict(pp=3, schedule='zb-h1'), dict(pp=2, schedule='interleaved', virtual_stages=2)],
    [dict(dp=2, zero_stage=0), dict(dp=2), dict(dp=2, pp=2)],
    [dict(tp=2), dict(tp=2, pp=2)],
]


def golden(case, folder, layout):
    d = train(case, folder, f'golden {layout}', layout, dtype='bfloat16', data={'shuffle': False})
    m, f = metrics(d), case.expected['float64']
    first, norm, end = (relative(m[i][k], f[i][k]) for i, k in ((0, 'loss'), (0, 'grad_norm'), (-1, 'loss')))
    if [x['valid_tokens'] for x in m] != [x['valid_tokens'] for x in f]: return 'counted labels'
    return '' if first <= FIRST_LOSS and norm <= FIRST_NORM and end <= LAST_LOSS else f'{first:.1e} {norm:.1e} {end:.1e}'


def same_bits(case, folder, group):
    seen = []
    for layout in group:
        d = train(case, folder, f'bits {layout}', layout, dtype='bfloat16')
        seen.append((numbers(d), digest(newest(d))))
    return '' if all(x == seen[0] for x in seen) else 'differ in ' + ', '.join(str(l) for l, x in zip(group, seen) if x != seen[0])


def restart(case, folder, layout):
    keep = constant(case, checkpoint={'interval': 10, 'keep_last': 9})
    whole = train(case, folder, f'whole {layout}', layout, steps=20, dtype='bfloat16', **keep)
    parts = train(case, folder, f'parts {layout}', layout, steps=10, dtype='bfloat16', **keep)
    train(case, folder, f'parts {layout}', layout, steps=20, dtype='bfloat16', run={'resume': 'auto'}, **keep)
    if numbers(whole) != numbers(parts): return 'metrics differ'
    return '' if digest(newest(whole)) == digest(newest(parts)) else 'digests differ'


def saturation(case, folder):
    """1,024 identical micro-batches have the gradient of one: sums are float32."""
    S, raw, tokens = case.expected['sequence_length'], folder + '/same.u16', folder + '/same.h5'
    with open(raw, 'wb') as f:
        f.write(struct.pack(f'<{1025 * S + 1}H', *((i % S * 7 + 3) % 100 for i in range(1025 * S + 1))))
    r = run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', case.config['vocab_size'], '--eod', -1, '-o', tokens, raw])
    if r.returncode: return last(r)
    norm = []
    for batch in (1, 1024):
        d = train(case, folder, f'same {batch}', {}, steps=1, dtype='bfloat16', train={'global_batch_size': batch},
                  data={'train': tokens, 'shuffle': False}, optim={'warmup_steps': 0, 'lr_schedule': 'constant'})
        norm.append(metrics(d)[0]['grad_norm'])
    return '' if relative(norm[1], norm[0]) <= 1e-3 else f'{norm}'


def main():
    tap, folder = Tap(), work('bfloat16')
    cases = {c: Case(c, folder) for c in CASES}
    for name, case in cases.items():
        for layout in GOLDEN:
            attempt(tap, f'{name} {layout} near the golden run', lambda: golden(case, folder, layout))
    for name in ('tied', 'qwen3'):
        for group in GROUPS:
            if all(cases[name].fits(*(l.get(k, 1) for k in ('dp', 'tp', 'pp'))) for l in group):
                attempt(tap, f'{name} bit-equal in {group}', lambda: same_bits(cases[name], folder, group))
        for layout in (dict(dp=2, pp=2), dict(dp=2, tp=2)):
            attempt(tap, f'{name} 20 = 10 + 10 in {layout}', lambda: restart(cases[name], folder, layout))
    attempt(tap, '1,024 identical micro-batches have the gradient of one', lambda: saturation(constant_case(cases['gqa']), folder))
    tap.done()


def constant_case(case):
    case.expected['optimizer'] = {k: v for k, v in case.expected['optimizer'].items() if k not in ('min_lr_ratio', 'warmup_steps')}
    return case


if __name__ == '__main__': main()
