"""The whole program with device = 'cuda' under the emulation: golden cases, each at one layout; 20 steps against the CPU at five layouts; lazy and eager
streams, NCCL and the host's memory to the same bits; one message where there is no usable device.

With DEVICE_PROGRAM=pretrain the same on real GPUs, where two runs have the same bits; without what only an emulation can show.
PRETRAIN_SOAK=1: every golden case at every layout."""
import copy, os, re, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
import harness
from harness import *
import golden

EMULATED, CPU = 'tests/cuemu/pretrain', 'cpu'
DEVICE = os.environ.get('DEVICE_PROGRAM', EMULATED)
REAL = DEVICE != EMULATED
ONE_DEVICE = {'CUEMU_DEVICES': '1', **({'CUDA_VISIBLE_DEVICES': os.environ.get('CUDA_VISIBLE_DEVICES', '0').split(',')[0]} if REAL else {})}
LAYOUTS = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2)]
# doc/design.md, section 7: loss in fp32; loss and gradient norm of step 1, loss at the end in 16 bits
LOSS = 2e-6
FIRST_LOSS, FIRST_NORM, LAST_LOSS = 2e-3, 1e-2, 1e-2


def emulated(case, folder, name, layout, dtype='float32', program=DEVICE, env=None, groups='', **more):
    """groups: more of the deck. -> the run's directory"""
    d = os.path.join(folder, f'{case.name}-{name}-{dtype}-{layout}'.replace(' ', ''))
    n = int(np.prod(layout))
    device = {'device': 'cpu' if program == CPU else 'cuda', 'threads': 1}
    path = case.deck(d, *layout, dtype=dtype, run={**device, **more.pop('run', {})}, **more)
    with open(path) as f: text = f.read()
    with open(path, 'w') as f: f.write(text.replace("'reference'", "'auto'") + groups)
    r = run(['pretrain' if program == CPU else program, path], n=n, env={'CUEMU_DEVICES': str(n), **(env or {})})
    if r.returncode: raise RuntimeError(f'{name} {layout} {dtype}: exit {r.returncode}: {last(r)}')
    return d


def numbers(d): return [(m['loss'], m['grad_norm'], m['valid_tokens']) for m in metrics(d)]


def near(d, want, dtype):
    """-> what falls short of section 7, as text"""
    m = metrics(d)
    if [a['valid_tokens'] for a in m] != [b['valid_tokens'] for b in want]: return 'counted labels'
    off = [relative(a['loss'], b['loss']) for a, b in zip(m, want)]
    norm = relative(m[0]['grad_norm'], want[0]['grad_norm'])
    if dtype == 'float32': return '' if max(off) <= LOSS else f'loss off by {max(off):.1e}'
    return '' if off[0] <= FIRST_LOSS and norm <= FIRST_NORM and off[-1] <= LAST_LOSS else f'{off[0]:.1e} {norm:.1e} {off[-1]:.1e}'


def golden_run(case, folder, layout, dtype, streams):
    d = emulated(case, folder, 'golden', layout, dtype, env={'CUEMU_STREAMS': streams})
    return ', '.join(golden.compare(case, d, 0)) if dtype == 'float32' else near(d, case.expected['float64'], dtype)


def small(case):
    """Less to emulate: four sequences of 16 tokens a step."""
    out = copy.copy(case)
    out.expected = {**case.expected, 'sequence_length': 16, 'global_batch': 4}
    return out


def twenty(case, folder, layout, dtype, attention='auto'):
    """20 steps: near the CPU's at the same layout; the same bits with eager streams, and at two ranks through the host's memory."""
    common = {'steps': 20, 'debug': {'attention': attention}}
    lazy = emulated(case, folder, 'lazy', layout, dtype, **common, env={'CUEMU_STREAMS': 'lazy'})
    eager = emulated(case, folder, 'eager', layout, dtype, **common, env={'CUEMU_STREAMS': 'eager', 'CUEMU_ORDER': 'reverse'})
    cpu = emulated(case, folder, 'cpu', layout, dtype, steps=20, program=CPU)
    if len(metrics(lazy)) != 20: return 'not 20 steps'
    if numbers(lazy) != numbers(eager): return 'lazy and eager streams differ'
    if np.prod(layout) == 2:
        shared = emulated(case, folder, 'shared', layout, dtype, **common, env={'CUEMU_STREAMS': 'lazy', **ONE_DEVICE})
        if numbers(lazy) != numbers(shared): return 'NCCL and the host memory differ'
    return near(lazy, metrics(cpu), dtype)


def stages(case, folder, layout, dtype):
    """Longer sequences from step 3, shorter ones from step 5; evaluations keep the length of the deck."""
    common = {'steps': 6, 'data': {'validation': case.tokens}, 'eval': {'interval': 2, 'batches': 1},
              'groups': '&stage /\n&stage start_step = 3, sequence_length = 48 /\n&stage start_step = 5, sequence_length = 8 /\n'}
    device, cpu = (metrics(emulated(case, folder, 'stages-' + p.split('/')[-1], layout, dtype, program=p, **common)) for p in (DEVICE, CPU))
    if [m['valid_tokens'] for m in device] != [64, 64, 192, 192, 32, 32]: return 'counted labels'
    limit = LOSS if dtype == 'float32' else LAST_LOSS
    off = [relative(a[k], b[k]) for a, b in zip(device, cpu) for k in ('loss', 'validation_loss') if k in b]
    return '' if len(off) == 9 and max(off) <= limit else f'{len(off)} losses, off by {max(off):.1e}'


def resume(case, folder):
    """10 steps on the device, 10 more on the CPU from its checkpoint; and the other way round."""
    keep = {'checkpoint': {'interval': 10, 'keep_last': 9}, 'steps': 20}
    whole = emulated(case, folder, 'whole', (1, 1, 1), **keep)
    for first, second in ((DEVICE, CPU), (CPU, DEVICE), (DEVICE, DEVICE)):
        name = 'to'.join('host' if p == CPU else 'device' for p in (first, second))
        d = emulated(case, folder, name, (1, 1, 1), program=first, **keep)
        shutil.rmtree(d + '/step_00000020')
        d = emulated(case, folder, name, (1, 1, 1), program=second, **{**keep, 'run': {'resume': 'auto'}})
        if [m['step'] for m in metrics(d)] != list(range(1, 21)): return name + ': steps'
        if first == second and numbers(d) != numbers(whole): return 'the restart has other bits'
        why = near(d, metrics(whole), 'float32')
        if why: return name + ': ' + why
    return ''


def offload(case, folder, layout, dtype):
    """Masters and moments in host memory: near the run without, checkpoints that either goes on from, and less memory on the device."""
    case.expected['optimizer'].pop('min_lr_ratio', None)
    keep = {'checkpoint': {'interval': 10, 'keep_last': 9}, 'steps': 20, 'optim': {'lr_schedule': 'constant'}}
    there = emulated(case, folder, 'there', layout, dtype, **keep)
    here = emulated(case, folder, 'here', layout, dtype, train={'offload': 'optimizer'}, **keep)
    why = near(here, metrics(there), dtype)
    if why: return why
    shutil.rmtree(here + '/step_00000020')
    back = emulated(case, folder, 'here', layout, dtype, train={'offload': 'optimizer'}, run={'resume': 'auto'}, **keep)
    if [m['step'] for m in metrics(back)] != list(range(1, 21)): return 'steps'
    whole = emulated(case, folder, 'whole', layout, dtype, train={'offload': 'optimizer'}, **keep)
    if numbers(back) != numbers(whole): return 'the restart has other bits'
    with open(here + '/log.txt') as f: return '' if 'of it in host memory' in f.read() else 'the plan does not say so'


def log_of(d):
    with open(d + '/log.txt') as f: return f.read()


def attention(case, folder):
    """Whose kernels: from the table, by hand, by a timing that a resumed run keeps, and none of cuDNN's where it cannot."""
    keep = {'dtype': 'bfloat16', 'checkpoint': {'interval': 2, 'keep_last': 9}, 'steps': 4, 'optim': {'lr_schedule': 'constant', 'warmup_steps': 0}}
    case.expected['optimizer'].pop('min_lr_ratio', None)

    def trial(name, text, word, **more):
        d = emulated(case, folder, name, (2, 1, 1), **{**keep, **more})
        if text not in log_of(d): return f'{name}: the log has no "{text}"'
        with open(d + '/input.nml') as f: return '' if f"attention = '{word}'" in f.read() else f'{name}: the resolved input does not say {word}'

    def resumed(name, text, word, **more):
        shutil.rmtree(os.path.join(folder, f'{case.name}-{name}-bfloat16-(2,1,1)', 'step_00000004'))
        return trial(name, text, word, run={'resume': 'auto'}, **more)
    timed = {'train': {'deterministic': False}}
    why = (trial('table', 'by cuDNN: it has plans', 'cudnn') or trial('hand', 'by our own kernels: as the input says', 'own', debug={'attention': 'own'}) or
           trial('mask', 'by our own kernels: document masks', 'own', data={'document_mask': True}) or
           resumed('table', 'by cuDNN: as before', 'cudnn') or resumed('hand', 'by our own kernels: as before', 'own') or
           trial('timing', ' ms by cuDNN', 'cudnn', **timed) or
           resumed('timing', 'by cuDNN: as before', 'cudnn', **timed) or
           resumed('table', 'by our own kernels: cuDNN', 'own', env={'CUEMU_CAPABILITY': '80'}))
    if why: return why
    runs = {name: numbers(os.path.join(folder, f'{case.name}-{name}-bfloat16-(2,1,1)')) for name in ('table', 'hand')}
    return '' if runs['table'] != runs['hand'] else 'both kernels have the same bits: was there a choice?'


def offload_activations(case, folder, layout, dtype, modes, **parallel):
    """Activations in host memory, with evaluations between steps: the same bits whatever the order of streams."""
    def one(offload, streams):
        d = emulated(case, folder, f'{offload}-{streams}-{parallel.get("schedule")}', layout, dtype, steps=2, env={'CUEMU_STREAMS': streams},
                     train={'offload': offload}, data={'validation': case.tokens}, optim={'warmup_steps': 1}, eval={'interval': 1, 'batches': 1}, **parallel)
        return numbers(d), [m['validation_loss'] for m in metrics(d)]
    there = one('none', 'eager')
    other = [streams for streams in modes if one('activations', streams) != there]
    return f'other bits with {other[0]} streams' if other else ''


def offload_memory(case, folder, **parallel):
    """By the plan of a larger model: all stages are smaller on the device, and what is there and on the host makes up for it; a run needs as much."""
    L = 12
    def of(offload):
        pp = parallel.get('pp', 1)
        path = deck(f'{folder}/memory-{offload}-{parallel.get("schedule")}.nml', run={'directory': folder + '/memory', 'device': 'cuda', 'threads': 1},
                    train={'train_steps': 1, 'sequence_length': 32, 'micro_batch_size': 16, 'global_batch_size': 16 * 4 * pp, 'offload': offload},
                    parallel=parallel, model={'hidden_size': 256, 'intermediate_size': 512, 'num_hidden_layers': L, 'num_attention_heads': 4},
                    data={'train': case.tokens}, optim={'learning_rate': 1e-3, 'warmup_steps': 0}, checkpoint={'save_final': False})
        r = run([EMULATED, '--plan', path, '--ranks', pp])
        rows = [l.split() for l in r.stdout.splitlines() if re.search(r'\d\+\d\+\d$', l)]
        if len(rows) != pp: raise RuntimeError(last(r))
        need = re.search(r'need ([\d.]+) GiB of the memory of a GPU', run([EMULATED, path], n=1, env={'CUEMU_MEMORY': '66'}).stderr) if pp == 1 else None
        return [(float(r[-3]), float(r[-2])) for r in rows], need and need[1]
    (there, need_there), (here, need_here) = of('none'), of('activations')
    for (whole, no), (total, host) in zip(there, here):
        if no or not host: return f'on the host: {no}, {host}'
        if not total - host < 0.85 * whole: return f'{total} MiB of which {host} on the host, {whole} without'
    if not need_here: return ''
    frames = 3 * (here[0][1] + 0.5) / L     # 0.5 MiB: the first block's input stays
    if abs(here[0][0] - there[0][0] - frames) > 0.2: return f'{here[0][0]} and {there[0][0]} MiB do not differ by {frames}'
    told = [f'{(total - host) / 1024:.2f}' for total, host in (there[0], here[0])]
    return '' if told == [need_there, need_here] else f'a run needs {need_there}, {need_here} GiB, the plan has {told}'


def said(r, code, text):
    why = [] if r.returncode == code else [f'exit {r.returncode}, expected {code}']
    if text not in r.stderr + r.stdout: why.append(f'no "{text}"')
    if code and sum(l.startswith('pretrain: ') for l in r.stderr.splitlines()) != 1: why.append('not one message')
    return '; '.join(why + [r.stderr[-300:]]) if why else ''


def messages(tap, case, folder):
    def deck_of(device, name):
        return case.deck(os.path.join(folder, name), dp=0, steps=1, run={'device': device, 'threads': 1}, optim={'warmup_steps': 0})
    none = {'CUEMU_DRIVER': 'none'}
    for name, env, text in (('no driver', none, 'no NVIDIA driver on this machine'),
                            ('an old driver', {'CUEMU_DRIVER': 'old'}, 'too old for this program'),
                            ('no device', {'CUEMU_DRIVER': 'nodevice', 'CUDA_VISIBLE_DEVICES': '7'}, "no CUDA device is visible (CUDA_VISIBLE_DEVICES is '7')"),
                            ('an old device', {'CUEMU_CAPABILITY': '75'}, 'compute capability 7.5, at least 8.0 is needed'),
                            ('a full device', {'CUEMU_MEMORY': '50'}, 'out of memory'),
                            ('a small device', {'CUEMU_MEMORY': '65'}, 'of the memory of a GPU')):
        attempt(tap, name + ': one message, exit 6', lambda: said(run([EMULATED, deck_of('cuda', 'm')], n=2, env=env), 6, text))
    attempt(tap, "'auto' without a driver: the CPU, and why", lambda: said(
        run([EMULATED, deck_of('auto', 'a')], n=1, env=none), 0, "device = 'auto': no NVIDIA driver"))
    attempt(tap, "'auto' with a device: it", lambda: said(run([EMULATED, deck_of('auto', 'b')], n=1), 0, 'Emulated device 0, sm_90'))
    attempt(tap, "two ranks on one device are told", lambda: said(
        run([EMULATED, deck_of('auto', 'c')], n=2), 0, '2 ranks share it'))

    def apart(device, code, text):
        deck_path = deck_of(device, 'apart')
        program = os.path.join(BIN, EMULATED)
        r = subprocess.run(MPIRUN + ['-n', '1', program, deck_path, ':', '-n', '1', 'env', 'CUEMU_DRIVER=none', program, deck_path],
                           text=True, capture_output=True, timeout=120)
        return said(r, code, text)
    attempt(tap, 'a rank without a device ends all ranks', lambda: apart('cuda', 6, 'no NVIDIA driver'))
    attempt(tap, "a rank without a device takes 'auto' to the CPU", lambda: apart('auto', 0, '1 of 2 ranks have no GPU'))
    asked = case.deck(os.path.join(folder, 'f'), dp=0, dtype='bfloat16', steps=1, debug={'attention': 'cudnn'}, run={'device': 'cuda'}, optim={'warmup_steps': 0})
    attempt(tap, 'cuDNN where it has no plans: one message, exit 6', lambda: said(
        run([EMULATED, asked], n=2, env={'CUEMU_CAPABILITY': '80'}), 6, 'attention by cuDNN is not possible'))
    attempt(tap, 'cuDNN on the CPU: one message, exit 6', lambda: said(
        run([EMULATED, '--set', "run.device='cpu'", asked], n=2), 6, "'cudnn' is for GPUs"))
    def offloaded(name, pp, **more):
        return case.deck(os.path.join(folder, name), pp=pp, steps=1, run={'device': 'cuda', 'threads': 1, **more}, optim={'warmup_steps': 0},
                         train={'offload': 'activations', 'global_batch_size': 1})
    attempt(tap, 'offload without an effect', lambda: said(run([EMULATED, offloaded('e', 2)], n=2), 2, 'has no effect: a rank keeps the activations of 2 blocks'))
    for args, n, text in ((['--check'], 0, '1 ranks on a node need'), ([], 1, "this node's 1 ranks need")):
        attempt(tap, f'offload beyond the memory of a node, {args}', lambda: said(
            run([EMULATED, *args, offloaded('g', 1, memory_limit=1e-5)], n=n), 6, text))
    attempt(tap, '--check needs no driver', lambda: said(run([EMULATED, '--check', deck_of('cuda', 'k')], env=none), 0, 'memory'))


def attempt(tap, name, body):
    start = time.time()
    try: why = body()
    except Exception as x: why = f'{type(x).__name__}: {x}'
    tap.ok(not why, name + (': ' + why.replace('\n', ' | ') if why else ''))
    print(f'# {time.time() - start:.1f} s')


def main():
    tap, folder = Tap(), work('cuda')
    cases = {c: Case(c, folder) for c in CASES}
    for i, (name, case) in enumerate(cases.items()):
        layouts = [l for l in LAYOUTS if case.fits(*l)]
        for k, layout in enumerate(layouts):
            if k != i % len(layouts) and not SOAK: continue
            for dtype in ('float32', 'bfloat16'):
                streams = 'lazy' if (i + (dtype == 'float32')) % 2 else 'eager'
                attempt(tap, f'{name} {dtype} {layout} near the golden run', lambda: golden_run(case, folder, layout, dtype, streams))
    for layout in LAYOUTS:
        for dtype in ('float32', 'bfloat16'):
            attempt(tap, f'20 steps, {dtype} {layout}', lambda: twenty(small(cases['gqa']), folder, layout, dtype, 'own' if layout[1] == 2 else 'auto'))
    attempt(tap, '20 steps, float16', lambda: twenty(small(cases['gqa']), folder, (1, 1, 1), 'float16'))
    for layout, dtype in (((1, 1, 1), 'bfloat16'), ((1, 2, 1), 'float32'), ((1, 1, 2), 'bfloat16')):
        attempt(tap, f'stages of other lengths, {dtype} {layout}', lambda: stages(small(cases['gqa']), folder, layout, dtype))
    for dtype in ('float32', 'bfloat16'):
        attempt(tap, f'offload of the optimiser, {dtype}', lambda: offload(copy.deepcopy(cases['tied']), folder, (2, 1, 1) if dtype == 'float32' else (1, 1, 1), dtype))
    if not REAL: attempt(tap, 'the choice of attention', lambda: attention(copy.deepcopy(small(cases['gqa'])), folder))
    schedules = [{'schedule': '1f1b'}, {'schedule': 'zb-h1'}, {'schedule': 'interleaved', 'virtual_stages': 2}]
    for name, dtype, modes in (('five', 'float32', ('lazy', 'ahead')), ('qwen3', 'bfloat16', ('lazy', 'eager'))):
        for layout, parallel in [((1, 1, 1), {}), *(((1, 1, 2), s) for s in schedules), *([((2, 2, 2), {'schedule': 'gpipe'})] if SOAK else [])]:
            attempt(tap, f'offload of activations, {name} {dtype} {layout} {parallel.get("schedule", "")}',
                    lambda: offload_activations(small(cases[name]), folder, layout, dtype, ('lazy', 'eager', 'ahead') if SOAK else modes, **parallel))
    if not REAL:
        for parallel in [{}, *({'pp': 2, **s} for s in schedules)]:
            attempt(tap, f'offload of activations, memory {parallel.get("schedule", "")}', lambda: offload_memory(cases['five'], folder, **parallel))
    attempt(tap, 'checkpoints go between device and CPU', lambda: resume(small(cases['tied']), folder))
    if not REAL: messages(tap, small(cases['gqa']), folder)
    tap.done()


if __name__ == '__main__': main()
