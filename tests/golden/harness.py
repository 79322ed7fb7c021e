"""Shared by the tests that run the built programs: decks, runs, metrics, safetensors, TAP.

BIN is the folder of the built programs (default: the current one), MPIRUN the launcher, TEST_TMP a folder for runs."""
import json, os, shutil, struct, subprocess, sys, tempfile
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get('BIN', os.getcwd())
MPIRUN = os.environ.get('MPIRUN', 'mpirun').split()
SOAK = os.environ.get('PRETRAIN_SOAK') == '1'
CASES = ['gqa', 'tied', 'llama3', 'qwen2', 'qwen3', 'five', 'bias']


class Tap:
    """Prints as it goes; plan at the end."""
    def __init__(self): self.n = self.bad = 0
    def ok(self, cond, name):
        self.n += 1; self.bad += not cond
        print(('ok' if cond else 'not ok') + f' {self.n} - {name}', flush=True)
        return cond
    def skip(self, name, why):
        self.n += 1
        print(f'ok {self.n} - {name} # SKIP {why}', flush=True)

    def done(self):
        print(f'1..{self.n}'); sys.exit(1 if self.bad or not self.n else 0)


def work(name):
    d = os.path.join(os.environ.get('TEST_TMP', tempfile.gettempdir()), f'pretrain-{name}-{os.getpid()}')
    shutil.rmtree(d, ignore_errors=True); os.makedirs(d)
    return d


def run(args, n=0, timeout=300, cwd=None, env=None):
    args = [os.path.join(BIN, args[0])] + [str(a) for a in args[1:]]
    return subprocess.run((MPIRUN + ['-np', str(n)] if n else []) + args, text=True, capture_output=True,
                          timeout=timeout, cwd=cwd, env={**os.environ, **(env or {})})


def last(r):
    t = (r.stderr or r.stdout).strip().splitlines()
    return t[-1][:300] if t else f'exit {r.returncode}'


def value(v):
    if isinstance(v, bool): return '.true.' if v else '.false.'
    if isinstance(v, str): return "'" + v.replace("'", "''") + "'"
    if isinstance(v, (list, tuple)): return ', '.join(value(x) for x in v)
    return repr(v)


def deck(path, **groups):
    with open(path, 'w') as f:
        for g, keys in groups.items():
            f.write(f'&{g}\n' + ''.join(f'  {k} = {value(v)}\n' for k, v in keys.items()) + '/\n')
    return path


def metrics(d):
    """The last attempt of every step, in order."""
    out = {}
    with open(os.path.join(d, 'metrics.jsonl')) as f:
        for line in f:
            j = json.loads(line); out[j['step']] = j
    return [out[k] for k in sorted(out)]


DTYPES = {'F64': np.float64, 'F32': np.float32, 'F16': np.float16, 'I32': np.int32, 'I64': np.int64, 'BF16': np.uint16}


def safetensors(path):
    """name -> array (bfloat16 as uint16)"""
    with open(path, 'rb') as f: raw = f.read()
    n, = struct.unpack('<Q', raw[:8]); head = json.loads(raw[8:8 + n]); base = 8 + n
    return {k: np.frombuffer(raw, DTYPES[v['dtype']], offset=base + v['data_offsets'][0],
                             count=int(np.prod(v['shape'], dtype=np.int64))).reshape(v['shape'])
            for k, v in head.items() if k != '__metadata__'}


class Case:
    """A golden case: its numbers, its token file, decks for it."""
    def __init__(self, name, folder):
        self.name, self.dir = name, os.path.join(HERE, name)
        with open(self.dir + '/expected.json') as f: self.expected = json.load(f)
        with open(self.dir + '/config.json') as f: self.config = json.load(f)
        self.tokens = os.path.join(folder, name + '.h5')
        r = run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', self.config['vocab_size'],
                 '--eod', self.expected['end_of_document'], '--documents', self.dir + '/documents.i64',
                 '-o', self.tokens, self.dir + '/tokens.u16'])
        if r.returncode: raise RuntimeError(f'{name}: {last(r)}')

    def fits(self, dp, tp, pp):
        c, G = self.config, self.config['num_key_value_heads']
        return not (c['num_attention_heads'] % tp or c['intermediate_size'] % tp or (G % tp and tp % G) or
                    self.expected['global_batch'] % dp or pp > c['num_hidden_layers'] + 2)

    def deck(self, directory, dp=1, tp=1, pp=1, dtype='float32', steps=None, run=None, optim=None,
             checkpoint=None, train=None, data=None, debug=None, eval=None, **parallel):
        e = self.expected
        return deck(directory + '.nml',
                    run={'directory': directory, 'resume': 'never', 'device': 'cpu', **(run or {})},
                    train={'train_steps': steps or e['steps'], 'sequence_length': e['sequence_length'],
                           'micro_batch_size': 1, 'global_batch_size': e['global_batch'], 'dtype': dtype, **(train or {})},
                    parallel={'dp': dp, 'tp': tp, 'pp': pp, **parallel},
                    model={'init_from': self.dir},
                    data={'train': self.tokens, 'shuffle': False, 'document_mask': e['document_mask'], **(data or {})},
                    optim={'lr_schedule': 'cosine', **e['optimizer'], **(optim or {})},
                    checkpoint={'interval': 0, **(checkpoint or {})}, eval=eval or {},
                    debug={'backend': 'reference' if dtype == 'float64' else 'auto', **(debug or {})})


def relative(a, b): return abs(a - b) / (abs(b) or 1)


def newest(d): return os.path.join(d, sorted(x for x in os.listdir(d) if x.startswith('step_'))[-1])


def merged(directory, extra=()):
    """The newest checkpoint of a run as arrays."""
    out = directory + '-hf'
    r = run(['pretrain-merge', newest(directory), '-o', out, *extra])
    if r.returncode: raise RuntimeError('merge: ' + last(r))
    return safetensors(out + '/model.safetensors')
