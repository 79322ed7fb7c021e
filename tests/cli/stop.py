"""A run that ends before its last step: signals, a STOP file, a loss that is not finite, a full disk; what it leaves behind,
and that the next start goes on to the bit. Also which checkpoints are kept."""

import os, resource, shutil, signal, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from tiny import *

ENOUGH = 100000


def started(s, name, n, act, **kw):
    """Starts a run that would not end, waits for its third step, acts on it; -> the completed process."""
    path = s.deck(name, steps=ENOUGH, **kw)
    args = (MPIRUN + ['-np', str(n)] if n > 1 else []) + [os.path.join(BIN, 'pretrain'), path]
    p = subprocess.Popen(
        args, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    out, start = [], time.time()
    for line in p.stdout:
        out.append(line)
        if line.split()[:1] == ['3']:
            break
    act(p)
    rest, err = p.communicate(timeout=60)
    r = subprocess.CompletedProcess(args, p.returncode, ''.join(out) + rest, err)
    r.seconds, r.deck = time.time() - start, path
    return r


def stops(tap, s):
    s.go('truth', steps=40)
    truth = s.losses('truth')

    def sent(sig):
        return lambda p: p.send_signal(sig)

    def to_all(p):
        os.killpg(p.pid, signal.SIGINT)  # Ctrl-C

    def stop_file(p):
        open(s.path('stop/STOP'), 'w').close()

    # mpirun's own exit code after SIGTERM is not ours to choose
    for name, n, act, code in [
        ('SIGTERM', 1, sent(signal.SIGTERM), 75),
        ('SIGINT', 1, sent(signal.SIGINT), 75),
        ('SIGUSR1', 1, sent(signal.SIGUSR1), 75),
        ('SIGTERM to mpirun', 2, sent(signal.SIGTERM), None),
        ('SIGINT to mpirun', 2, sent(signal.SIGINT), None),
        ('Ctrl-C of a job', 2, to_all, None),
        ('a STOP file', 2, stop_file, 75),
    ]:

        def body():
            shutil.rmtree(s.path('stop'), ignore_errors=True)
            dp = {'parallel': {'dp': n}}
            r = started(s, 'stop', n, act, **dp)
            at = s.losses('stop')[-1][0]
            why = expect(
                r,
                r.returncode if code is None else code,
                f'stopped after step {at} as asked, checkpoint written',
            )
            if why:
                return why
            if s.steps('stop')[-1] != at:
                return f'step {at}, checkpoints {s.steps("stop")}'
            if {'RUN_COMPLETE', 'RUN_FAILED'} & set(s.files('stop')):
                return str(s.files('stop'))
            r = s.go('stop', steps=at + 2, **dp)
            if 'STOP' in s.files('stop') or 'RUN_COMPLETE' not in s.files('stop'):
                return str(s.files('stop'))
            return (
                ''
                if n > 1 or s.losses('stop')[:40] == truth[: at + 2]
                else 'another result than without a stop'
            )

        attempt(tap, f'{name}: checkpoint, and the next start goes on', body)


def blocked(tap, s):
    """A handler that runs inside a product of oneDNN 2.6 destroys the heap (train/watch.c): signals wait until a step is done."""
    mask = []

    def look(p):
        for _ in range(50):
            with open(f'/proc/{p.pid}/status') as f:
                mask.append(int(dict(x.split(':\t') for x in f.read().splitlines())['SigBlk'], 16))
            time.sleep(0.002)
        p.send_signal(signal.SIGTERM)

    r = started(s, 'blocked', 1, look)
    want = sum(1 << (x - 1) for x in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1))
    tap.ok(
        r.returncode == 75 and sum(m & want == want for m in mask) >= 40, 'signals wait until a step is done'
    )


def killed(tap, s):
    """One rank dies: nobody can save or speak, but the next start goes on from the newest checkpoint."""

    def kill_one(p):
        for pid in orphans(s.path('killed.nml')):
            with open(f'/proc/{pid}/cmdline', 'rb') as f:
                if f.read().split(b'\0')[0] == os.fsencode(os.path.join(BIN, 'pretrain')):
                    os.kill(int(pid), signal.SIGKILL)
                    return

    def body():
        r = started(s, 'killed', 2, kill_one, parallel={'dp': 2}, checkpoint={'interval': 1})
        if r.returncode == 0:
            return 'exit 0'
        time.sleep(0.2)
        if orphans(r.deck):
            return f'orphans {orphans(r.deck)}'
        at = max(s.steps('killed'))
        s.go('killed', steps=at + 3, parallel={'dp': 2})
        m = s.losses('killed')
        s.go('unharmed', steps=at + 3, parallel={'dp': 2})
        return '' if m == s.losses('unharmed') else 'another result than without the kill'

    attempt(tap, 'a rank is killed: all end, and the next start goes on to the bit', body)
    path = s.deck('piped', steps=4)
    p = subprocess.Popen(
        [os.path.join(BIN, 'pretrain'), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    p.stdout.close()
    tap.ok(p.wait() == 0 and 'RUN_COMPLETE' in s.files('piped'), 'nobody reads the output: the run goes on')
    for name in ('metrics.jsonl', 'log.txt'):
        os.mkdir(s.path('dev-' + name))
        os.symlink('/dev/full', s.path('dev-' + name, name))
    attempt(
        tap,
        'B37: metrics.jsonl on a full disk: exit 3, path and reason',
        lambda: expect(
            s.go('dev-metrics.jsonl', check=False, ranks=2), 3, 'metrics.jsonl: cannot write: No space left'
        ),
    )
    r = s.go('dev-log.txt', ranks=2)
    tap.ok(
        'no more lines go to the log file' in r.stderr and r.stderr.count('\n') == 1,
        'log.txt on a full disk: said once, the run goes on',
    )


def keeps(tap, s):
    def kept(name, steps, want, **checkpoint):
        s.go(name, steps=steps, checkpoint=checkpoint)
        tap.ok(s.steps(name) == want, f'{name}: steps {s.steps(name)} are kept')

    kept('keep-last', 7, [5, 6, 7], interval=1, keep_last=3)
    kept('keep-every', 7, [3, 6, 7], interval=1, keep_last=1, keep_every=3)
    kept('interval', 5, [2, 4, 5], interval=2, keep_last=9)
    kept('not-final', 5, [2, 4], interval=2, keep_last=9, save_final=False)
    kept('none', 3, [], interval=0, save_final=False)
    kept('initial', 2, [0, 2], interval=0, save_initial=True)
    tap.ok('RUN_COMPLETE' in s.files('none'), 'without a checkpoint a run is complete too')


def poisoned(tap, s):
    """A weight that is no number: met in the first step, or later by the data."""

    def nan(row):
        return lambda t: t['model.embed_tokens.weight'].__setitem__((row, 5), np.nan)

    bad = hf_folder(s.path('hf-nan'), change=nan(7))
    ids = np.where(random_ids(1200) == 7, 8, random_ids(1200))
    ids[100] = 7
    data = token_file(s.path('rare.h5'), ids)
    kw = dict(
        model={'init_from': bad},
        data={'train': data, 'shuffle': False},
        checkpoint={'interval': 1, 'keep_last': 9},
        steps=5,
    )
    for name, layout in [('one', {}), ('dp', {'dp': 2}), ('tp', {'tp': 2}), ('pp', {'pp': 2})]:

        def body():
            r = s.go('nan-' + name, check=False, parallel=layout, **kw)
            why = expect(r, 4, 'step 2: loss nan', 'weights are those of step 1')  # token 100 is in sample 6
            if why:
                return why
            with open(s.path('nan-' + name, 'RUN_FAILED')) as f:
                text = f.read()
            if not text.startswith('code 4\n') or 'step 2' not in text:
                return text
            if [x[0] for x in s.losses('nan-' + name)] != [1]:
                return 'a line of the step that failed'
            return '' if s.steps('nan-' + name) == [1] else f'checkpoints {s.steps("nan-" + name)}'

        attempt(tap, f'NaN in step 2, {name}: exit 4, RUN_FAILED, no checkpoint of it', body)
    r = s.go('nan-one', check=False, steps=5, **{k: v for k, v in kw.items() if k != 'steps'})
    tap.ok(r.returncode == 4 and s.steps('nan-one') == [1], 'again, from its last good checkpoint')
    huge = hf_folder(
        s.path('hf-inf'), change=lambda t: t['lm_head.weight'].__setitem__((slice(None), 0), 3e38)
    )
    attempt(
        tap,
        'a loss that overflows',
        lambda: expect(s.go('inf', check=False, model={'init_from': huge}), 4, 'step 1: loss', 'step 0'),
    )


class Disk:
    """A tiny tmpfs, when we may mount one."""

    def __init__(self, path, size):
        os.mkdir(path)
        self.path = path
        self.ok = (
            subprocess.run(
                ['mount', '-t', 'tmpfs', '-o', f'size={size}', 'none', path], capture_output=True
            ).returncode
            == 0
        )

    def __enter__(self):
        return self.ok

    def __exit__(self, *a):
        if self.ok:
            subprocess.run(['umount', '-l', self.path])


def full_disk(tap, s):
    """Room for one checkpoint of 1.5 MB and a half."""
    names = [
        'B37: full disk: exit 3, path and reason',
        'B37: full disk: the first checkpoint is whole',
        'B37: full disk: nothing half-written is left',
        'on_error = continue: said, and the run goes on',
        'on_error = continue: all steps, the first checkpoint is there',
        'with room again it goes on from there',
    ]
    if os.geteuid() != 0:
        for n in names:
            tap.ok(True, n + ' # SKIP needs root')
        return
    kw = dict(parallel={'dp': 2}, checkpoint={'interval': 2, 'keep_last': 9}, steps=4)
    for how in ('stop', 'continue'):
        disk = s.path('disk-' + how)
        with Disk(disk, 2600000) as ok:
            if not ok:
                for n in names[:3] if how == 'stop' else names[3:]:
                    tap.ok(True, n + ' # SKIP no tmpfs')
                continue
            kw['checkpoint']['on_error'] = how
            r = s.go(f'{how}-full', check=False, directory=disk + '/run', **kw)
            run_dir = f'disk-{how}/run'
            if how == 'stop':
                why = expect(r, 3, 'step_00000004', 'No space left')
                tap.ok(not why, names[0] + ('' if not why else ': ' + why))
                tap.ok(s.steps(run_dir) == [2] and digest(disk + '/run/step_00000002') != '', names[1])
                tap.ok(
                    not any('tmp' in f or 'bad' in f for f in s.files(run_dir)),
                    names[2] + f' {s.files(run_dir)}',
                )
            else:
                tap.ok(
                    r.returncode == 0 and 'No space left' in r.stderr and "on_error = 'continue'" in r.stderr,
                    names[3] + ('' if r.returncode == 0 else ': ' + last(r)),
                )
                tap.ok(
                    s.steps(run_dir) == [2] and [x[0] for x in s.losses(run_dir)] == [1, 2, 3, 4], names[4]
                )
                subprocess.run(['mount', '-o', 'remount,size=9000000', disk])
                r = s.go(f'{how}-full', check=False, directory=disk + '/run', **kw)
                tap.ok(r.returncode == 0 and s.steps(run_dir) == [2, 4], names[5])


def limits(tap, s):
    """A limit on the size of a file, between MPI's own files in memory and the checkpoint: a short write without a full disk."""
    wide = dict(hidden_size=256, intermediate_size=1024)
    path = s.deck('limit', model=wide)

    def low():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))

    r = subprocess.run([os.path.join(BIN, 'pretrain'), path], text=True, capture_output=True, preexec_fn=low)
    names = [
        'file size limit: exit 3, path and reason',
        'file size limit: nothing half-written',
        'file size limit: RUN_FAILED',
        'RUN_FAILED goes when the run succeeds',
    ]
    if r.returncode < 0:
        for n in names:
            tap.ok(True, n + ' # SKIP MPI needs larger files')
        return
    tap.ok(
        r.returncode == 3
        and 'step_00000002' in r.stderr
        and 'File too large' in r.stderr
        and r.stderr.count('pretrain: ') == 1,
        names[0] + ': ' + last(r)[-160:],
    )
    tap.ok(not any(f.startswith('step_') for f in s.files('limit')), names[1])
    tap.ok('RUN_FAILED' in s.files('limit') and 'RUN_COMPLETE' not in s.files('limit'), names[2])
    s.go('limit', model=wide)
    tap.ok('RUN_FAILED' not in s.files('limit') and 'RUN_COMPLETE' in s.files('limit'), names[3])


def main():
    tap, s = Tap(), Scene('stop')
    for part in (stops, blocked, killed, keeps, poisoned, full_disk, limits):
        part(tap, s)
    tap.done()


if __name__ == '__main__':
    main()
