"""usage: docs.py SRCDIR; BIN, MPIRUN, TEST_TMP from the environment. Runs the two documents in one scratch folder (TAP).

A fence's first line says what is done with it:
  ```sh run           run under sh -e in the scratch folder; with `short` two steps are enough
  ```text [exact]     after such a block: its lines appear in the output, up to blanks and (not exact) figures; `...` is skipped
  ```fortran NAME     written to NAME
  ```python           run, in one name space per document; skipped when it imports what is not there
Other fences only show something."""
import ctypes, ctypes.util, glob, io, os, re, signal, subprocess, sys, traceback, types
from contextlib import redirect_stdout

SRC, BIN, WORK = sys.argv[1], os.environ['BIN'], os.environ['TEST_TMP']
SHORT = '--set train.train_steps=2 --set optim.warmup_steps=0'
SHELL = f'''
PATH="{BIN}:$PATH"
mpirun() {{ {os.environ['MPIRUN']} "$@" $short; }}
python3() {{ "{sys.executable}" "$@"; }}
'''
made = failed = 0


def ok(holds, name, *why):
    global made, failed
    made += 1
    failed += not holds
    print('ok' if holds else 'not ok', made, '-', name)
    for text in () if holds else why: print(re.sub('^', '#   ', text.strip()[-3000:], flags=re.M))
    sys.stdout.flush()
    return holds


def skip(name, why):
    global made
    made += 1
    print(f'ok {made} - {name} # SKIP {why}')


def blocks(name):
    """(line, words of the fence, text) of each"""
    out, fence, text = [], None, []
    with open(os.path.join(SRC, 'doc', name), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            if not line.startswith('```'):
                text.append(line)
            elif fence is None:
                fence, text = (number, line[3:].split()), []
            else:
                out.append((*fence, ''.join(text)))
                fence = None
    return out


def shape(line, exact):
    """What a line keeps on another machine and in another run."""
    line = re.sub(r'; \d+ ranks share \d+ cores?', '', line).replace('threads', 'thread')
    line = re.sub(r'\b[0-9a-f]{32}\b', '#', line)
    return ' '.join((line if exact else re.sub(r'\d[\d,.:]*(e[-+]\d+)?', '#', line)).split())


def run(text, words):
    short = f"short='{SHORT}'\n" if 'short' in words else 'short=\n'
    p = subprocess.Popen(['sh', '-e', '-c', SHELL + short + text], cwd=WORK, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, encoding='utf-8', start_new_session=True)
    try:
        out = p.communicate(timeout=120)[0]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        return 'it did not end', p.communicate()[0]
    return (f'exit {p.returncode}' if p.returncode else ''), out


def run_document(name):
    out = None
    for line, words, text in blocks(name):
        title = f'{name}:{line}: ' + ' '.join(words)
        if words[:2] == ['sh', 'run']:
            why, out = run(text, words)
            ok(not why, title, why, out)
            continue
        if words[:1] == ['text'] and out is not None:
            exact = 'exact' in words
            have = {shape(x, exact) for x in out.splitlines()}
            lost = [x for x in text.splitlines() if x != '...' and shape(x, exact) not in have]
            ok(not lost, title + ' is what is shown', 'not shown:\n' + '\n'.join(lost), 'but:\n' + out)
        elif words[:1] == ['fortran'] and len(words) > 1:
            with open(os.path.join(WORK, words[1]), 'w') as f: f.write(text)
        out = None


# ---- Python ----

def own_xxhash():
    """The module for those who lack it, from the library that the programs use."""
    class Hash(ctypes.Structure): _fields_ = [('low', ctypes.c_uint64), ('high', ctypes.c_uint64)]
    try: function = ctypes.CDLL(ctypes.util.find_library('xxhash') or 'libxxhash.so.0').XXH3_128bits
    except (OSError, AttributeError): return
    function.restype, function.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    module = types.ModuleType('xxhash')
    def xxh3_128_hexdigest(b): h = function(b, len(b)); return f'{h.high:016x}{h.low:016x}'
    module.xxh3_128_hexdigest = xxh3_128_hexdigest
    sys.modules['xxhash'] = module


def run_python(title, text, space):
    """-> what it prints; None if it was skipped or failed"""
    for module in re.findall(r'^(?:import|from) (\w+)', text, re.M):
        try: __import__(module)
        except ImportError: return skip(title, 'no ' + module)
    out = io.StringIO()
    try:
        with redirect_stdout(out): exec(compile(text, title, 'exec'), space)
    except Exception:
        ok(False, title, traceback.format_exc())
        return None
    ok(True, title)
    return out.getvalue()


def run_programs(name, step):
    """All ```python of a document, on another checkpoint too. -> their name space and output"""
    space, shown = {}, ''
    for line, words, text in blocks(name):
        if words == ['python']:
            text = text.replace('runs/mine/step_00000060', step)
            shown += run_python(f'{name}:{line}: python, {step}', text, space) or ''
    return space, shown


def refuses(function, *args):
    try: function(*args)
    except AssertionError: return True
    return False


def check_programs(step):
    """What the programs of checkpoint.md hold and print, against h5py's view of index.h5."""
    import h5py
    import numpy as np
    space, shown = run_programs('checkpoint.md', step)
    lines = shown.splitlines()
    with h5py.File(step + '/index.h5', 'r') as f:
        ok(len(lines) == 2 and lines[1] == f"{f.attrs['step']} {space['embedding'].shape} float32", step + ': printed', shown)
        same = [np.array_equal(space['tensor'](step, kind, t), f[kind][t]) for kind in ('weights', 'exp_avg', 'exp_avg_sq') for t in f[kind]]
    ok(all(same) and len(same) > 30, step + ': every tensor by the manifest alone is that of index.h5')
    ok(lines[:1] == ["uint16 b'" + open(os.path.join(SRC, 'README.md'), encoding='utf-8').read().split('\n\n')[1].replace('\n', '\\n') + "'"],
       step + ': the second document', shown)
    if 'check' in space:
        with open(glob.glob(step + '/rank_*.h5')[-1], 'r+b') as f: f.write(b'?')
        ok(refuses(space['check'], step), step + ': a changed byte is found')


def main():
    for name in ('README.md', 'doc', 'input'): os.symlink(os.path.join(SRC, name), os.path.join(WORK, name))
    os.chdir(WORK)
    # the quick start's data, in small
    why, out = run('''mkdir data
        pretrain-data tokenizer train --vocab-size 4096 -o data/tokenizer.json doc/*.md
        pretrain-data tokenize --tokenizer data/tokenizer.json -o data/train.h5 doc/*.md
        pretrain-data tokenize --tokenizer data/tokenizer.json -o data/validation.h5 README.md''', [])
    ok(not why, 'data for the quick start', why, out)
    run_document('tutorial.md')
    run_programs('tutorial.md', 'runs/mine/step_00000060')
    try: import h5py, numpy
    except ImportError: skip('checkpoint.md', 'no h5py and NumPy')
    else:
        try: import xxhash
        except ImportError: own_xxhash()
        why, out = run(f'"{BIN}"/tests/interop/checkpoint_files .', [])
        ok(not why, 'a checkpoint with many boxes', why, out)
        for step in ('runs/mine/step_00000060', 'many/step_00000003'): check_programs(step)
    print(f'1..{made}')
    sys.exit(failed > 0)


if __name__ == '__main__': main()
