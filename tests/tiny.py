"""What the tests have in common that run the built programs as a user does: T0, a tiny llama on generated tokens, and
ways to say what should happen. A run's name is its directory in the scene's folder."""

import glob, os, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'golden'))
from harness import *

T0 = dict(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=160,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
T0_COUNT, T0_LAYER, T0_TIED = 119104, 43136, 102720  # parameters: two layers, a layer more, tied


def merge_groups(*all_groups):
    out = {}
    for groups in all_groups:
        for g, keys in groups.items():
            out[g] = {**out.get(g, {}), **keys}
    return {g: {k: v for k, v in keys.items() if v is not None} for g, keys in out.items()}


def token_file(path, ids, documents=None, vocab=256, eod=-1):
    np.asarray(ids, '<u2').tofile(path + '.raw')
    args = ['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', vocab, '--eod', eod, '-o', path]
    if documents is not None:
        np.asarray(documents, '<i8').tofile(path + '.starts')
        args += ['--documents', path + '.starts']
    r = run(args + [path + '.raw'])
    if r.returncode:
        raise RuntimeError(last(r))
    return path


def random_ids(n, vocab=256, seed=1):
    return np.random.default_rng(seed).integers(0, vocab, n)


class Scene:
    def __init__(self, name, ids=None):
        self.dir = work(name)
        self.data = token_file(self.path('t.h5'), random_ids(1200) if ids is None else ids)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def deck(self, name, steps=2, seq=16, batch=4, directory=None, **groups):
        """groups: a key None is left out of the deck."""
        base = {
            'run': {'directory': directory or self.path(name), 'threads': 1},
            'train': {'train_steps': steps, 'sequence_length': seq, 'global_batch_size': batch},
            'model': T0,
            'data': {'train': self.data},
            'optim': {'learning_rate': 1e-3, 'lr_schedule': 'constant'},
            'checkpoint': {'interval': 0},
        }
        groups = merge_groups(base, groups)
        if groups.get('model', {}).get('init_from'):
            groups['model'] = {k: v for k, v in groups['model'].items() if T0.get(k) != v}
        return deck(self.path(os.path.basename(name) + '.nml'), **groups)

    def go(self, name, ranks=None, check=True, args=(), env=None, cwd=None, **kw):
        """Runs the deck; ranks: what the layout needs, or another number."""
        p = kw.get('parallel', {})
        n = ranks if ranks is not None else p.get('dp', 1) * p.get('tp', 1) * p.get('pp', 1)
        path = self.deck(name, **kw)
        start = time.time()
        r = run(['pretrain', *args, path], n=0 if n == 1 else n, env=env, cwd=cwd, timeout=120)
        r.seconds, r.deck = time.time() - start, path
        if check and r.returncode:
            raise RuntimeError(f'{name}: exit {r.returncode}: {last(r)}')
        return r

    def losses(self, name):
        return [(m['step'], m['loss'], m['grad_norm']) for m in metrics(self.path(name))]

    def files(self, name):
        return sorted(os.listdir(self.path(name)))

    def steps(self, name):
        return [int(f[5:]) for f in self.files(name) if re_step(f)]


def re_step(name):
    return name.startswith('step_') and name[5:].isdigit()


def orphans(deck_path):
    """Processes that still run this deck."""
    out = []
    for p in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(p, 'rb') as f:
                words = f.read().split(b'\0')
        except OSError:
            continue
        if os.fsencode(deck_path) in words:
            out.append(p.split('/')[2])
    return out


def attempt(tap, name, body):
    """body() -> '' or None if it holds, else why not."""
    try:
        why = body()
    except Exception as x:
        why = f'{type(x).__name__}: {x}'
    tap.ok(not why, name + (': ' + str(why).replace('\n', ' | ')[:600] if why else ''))


def expect(r, code, *texts, voices=1):
    """-> what falls short of: this exit code, these texts on stderr in so many messages, quickly, no process left."""
    why = [] if r.returncode == code else [f'exit {r.returncode}, expected {code}']
    why += [f'no "{t}"' for t in texts if t not in r.stderr]
    said = sum(line.startswith('pretrain: ') for line in r.stderr.splitlines())
    if said != voices:
        why.append(f'{said} messages')
    if r.seconds > 60:
        why.append(f'{r.seconds:.0f} s')
    if orphans(r.deck):
        why.append(f'orphans: {orphans(r.deck)}')
    return '; '.join(why + ['said: ' + r.stderr.strip()[-400:]]) if why else ''


def digest(checkpoint):
    r = run(['pretrain-ckpt', 'digest', checkpoint])
    if r.returncode:
        raise RuntimeError('digest: ' + last(r))
    return r.stdout.split()[0]


def whole(checkpoint):
    """Whole tensors of a checkpoint, from index.h5: kind -> name -> array."""
    import h5py

    out = {}
    with h5py.File(os.path.join(checkpoint, 'index.h5'), 'r') as f:
        for kind in ('weights', 'exp_avg', 'exp_avg_sq'):
            out[kind] = {k: v[...] for k, v in f[kind].items()}
    return out


# ---- Hugging Face folders ----


def write_safetensors(path, tensors, types=None):
    names = {np.dtype('<f4'): 'F32', np.dtype('<f8'): 'F64', np.dtype('<f2'): 'F16', np.dtype('<i4'): 'I32'}
    head, at, body = {}, 0, b''
    for k, v in tensors.items():
        raw = np.ascontiguousarray(v).tobytes()
        head[k] = {
            'dtype': (types or {}).get(k) or names[v.dtype],
            'shape': list(v.shape),
            'data_offsets': [at, at + len(raw)],
        }
        body += raw
        at += len(raw)
    text = json.dumps(head).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + body)


def t0_shapes(m):
    D, F, V, K = (
        m['hidden_size'],
        m['intermediate_size'],
        m['vocab_size'],
        m['hidden_size'] // m['num_attention_heads'],
    )
    H, G = m['num_attention_heads'], m['num_key_value_heads']
    out = {'model.embed_tokens.weight': (V, D), 'model.norm.weight': (D,)}
    if not m.get('tie_word_embeddings'):
        out['lm_head.weight'] = (V, D)
    for i in range(m['num_hidden_layers']):
        p = f'model.layers.{i}.'
        out.update(
            {
                p + 'input_layernorm.weight': (D,),
                p + 'post_attention_layernorm.weight': (D,),
                p + 'self_attn.q_proj.weight': (H * K, D),
                p + 'self_attn.k_proj.weight': (G * K, D),
                p + 'self_attn.v_proj.weight': (G * K, D),
                p + 'self_attn.o_proj.weight': (D, H * K),
                p + 'mlp.gate_proj.weight': (F, D),
                p + 'mlp.up_proj.weight': (F, D),
                p + 'mlp.down_proj.weight': (D, F),
            }
        )
    return out


def hf_folder(path, model=T0, change=None, config=None, seed=3):
    """A folder with random weights. change(tensors) alters them; config: keys of config.json, None removes one."""
    rng = np.random.default_rng(seed)
    tensors = {
        k: (1 + 0.1 * rng.standard_normal(s) if 'norm' in k else 0.05 * rng.standard_normal(s)).astype('<f4')
        for k, s in t0_shapes(model).items()
    }
    if change:
        change(tensors)
    os.makedirs(path, exist_ok=True)
    write_safetensors(path + '/model.safetensors', tensors)
    c = {
        'architectures': ['LlamaForCausalLM'],
        'model_type': 'llama',
        'hidden_act': 'silu',
        'max_position_embeddings': 64,
        'rms_norm_eps': 1e-5,
        'rope_theta': 10000.0,
        'tie_word_embeddings': False,
        'initializer_range': 0.02,
        'torch_dtype': 'float32',
        **model,
        **(config or {}),
    }
    with open(path + '/config.json', 'w') as f:
        json.dump({k: v for k, v in c.items() if v is not None}, f)
    return path
