"""pretrain-infer: golden logits in every layout; likelihoods against the trainer's loss and against logits, the same bits for
every number of replicas; greedy continuations of transformers (greedy.json), with and without kept keys; draws that depend on
nothing but seed, prompt and place; texts; runs that were killed; what is refused.

PRETRAIN_SOAK=1: every case at every layout of up to eight ranks."""
import os, signal, subprocess, sys, time
MINE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(MINE, '../golden'))
sys.path.insert(0, os.path.join(MINE, '..'))
from tiny import *
import harness

LOGITS = {'float32': 5e-6, 'float64': 1e-12}       # absolute, as in tests/golden
LOSS = {'float32': 2e-6, 'float64': 1e-12}
ALL = [(d, t, p) for d in range(1, 9) for t in (1, 2, 4) for p in range(1, 9) if d * t * p <= 8]
FEW = [(1, 1, 1), (1, 2, 2), (1, 4, 1), (2, 1, 2), (1, 1, 3), (1, 2, 1)]
BITS = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (1, 1, 3)]    # one result, to the bit
GREEDY = json.load(open(MINE + '/greedy.json'))


def final_folder(folder, name):
    """A Hugging Face folder with the case's final weights."""
    d = f'{folder}/{name}-final'
    if not os.path.isdir(d):
        os.makedirs(d)
        for a, b in (('config.json', 'config.json'), ('final.safetensors', 'model.safetensors')):
            shutil.copy(f'{harness.HERE}/{name}/{a}', f'{d}/{b}')
    return d


def lines(path, rows):
    with open(path, 'w') as f: f.writelines(json.dumps(x) + '\n' for x in rows)
    return path


def read(path):
    with open(path) as f: return [json.loads(x) for x in f]


def infer(command, model, inputs, out, layout=(1, 1, 1), *more):
    """-> the finished process; threads 1, so that bits can be compared"""
    dp, tp, pp = layout
    inputs = inputs if isinstance(inputs, list) else [inputs]
    return run(['pretrain-infer', command, model, *inputs, '-o', out, '--tp', tp, '--pp', pp, '--threads', 1, '--device', 'cpu', *more], n=dp * tp * pp)


def must(*args):
    r = infer(*args)
    if r.returncode: raise RuntimeError(f'exit {r.returncode}: {last(r)}')
    return r


def layouts(case, i, n):
    """n of the layouts that fit, other ones for each case; all in the soak."""
    all = [x for x in (ALL if SOAK else FEW) if case.fits(*x)]
    return all if SOAK else [all[(i + k) % len(all)] for k in range(n)]


# ---- logits ----

def h5_logits(path):
    import h5py
    with h5py.File(path, 'r') as f: return f['logits'][...], f['lengths'][...]


def logits(tap, cases, folder):
    for i, case in enumerate(cases):
        ref = safetensors(case.dir + '/logits.safetensors')
        ids, V = ref['input_ids'].tolist(), case.config['vocab_size']
        rows = [ids, ids[:17], ids[:1]]
        path = lines(f'{folder}/ids.jsonl', [{'ids': x} for x in rows])
        for k, layout in enumerate(layouts(case, i, 2) + ([(2, 2, 2)] if i == 0 and not SOAK else [])):
            dtype = 'float64' if k == 0 else 'float32'
            out, model, want = f'{folder}/logits.{"h5" if k else "safetensors"}', final_folder(folder, case.name), ref['final']
            if k == 1: model, want = case.dir, ref['initial']
            r = infer('logits', model, path, out, layout, '--dtype', dtype, '--batch', 2)
            if r.returncode: tap.ok(0, f'{case.name} logits {layout}: exit {r.returncode}: {last(r)}'); continue
            t = safetensors(out) if k == 0 else dict(zip(('logits', 'lengths'), h5_logits(out)))
            off = max(abs(t['logits'][j, :len(x)] - want[:len(x)]).max() for j, x in enumerate(rows))
            tap.ok(t['logits'].dtype == dtype and t['logits'].shape == (3, 60, V) and t['lengths'].tolist() == [60, 17, 1] and
                   not t['logits'][1, 17:].any() and off <= LOGITS[dtype] and not os.path.exists(out + '.parts'),
                   f'{case.name} logits {layout} {dtype}: {off:.1e}')


# ---- likelihoods ----

def mean(rows): return sum(x['nll'] for x in rows) / sum(x['counted'] for x in rows)


def likelihoods(tap, case, folder):
    """The first batch of the golden run: its loss is known."""
    e = case.expected; S = e['sequence_length']; n = e['global_batch'] * S + 1
    np.fromfile(case.dir + '/tokens.u16', '<u2')[:n].tofile(folder + '/batch.raw')
    docs = np.fromfile(case.dir + '/documents.i64', '<i8'); docs = docs[docs < n]; docs.tofile(folder + '/batch.docs')
    r = run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', case.config['vocab_size'], '--eod', e['end_of_document'],
             '--documents', folder + '/batch.docs', '-o', folder + '/batch.h5', folder + '/batch.raw'])
    if r.returncode: return tap.ok(0, 'import: ' + last(r))
    mask, out, texts = 'yes' if e['document_mask'] else 'no', folder + '/nll.jsonl', {}
    for dtype, layout in [('float32', x) for x in BITS] + [('float32', (1, 2, 2)), ('float64', (2, 2, 1))]:
        r = infer('nll', case.dir, folder + '/batch.h5', out, layout, '--dtype', dtype, '--sequence-length', S, '--document-mask', mask,
                  '--batch', 2, '--each-token')
        if r.returncode: tap.ok(0, f'{case.name} nll {layout}: exit {r.returncode}: {last(r)}'); continue
        with open(out) as f: texts[dtype, layout] = f.read()
        rows = read(out)
        off = relative(mean(rows), e['float64'][0]['loss'])
        counted = sum(x['counted'] for x in rows) == e['float64'][0]['valid_tokens']
        starts = [x['first_token'] for x in rows] == docs.tolist() and sum(x['tokens'] for x in rows) == n
        tokens = all(abs(sum(t for t in x['token_nll'] if t is not None) - x['nll']) < 1e-9 for x in rows)
        tap.ok(off <= LOSS[dtype] and counted and starts and tokens, f'{case.name} nll {layout} {dtype}: {off:.1e} from the loss of step 1')
    same = {texts.get(('float32', x)) for x in BITS}
    tap.ok(len(same) == 1 and None not in same, f'{case.name} nll: the same bits for dp 1, 2, 3 and pp 3')


def log_softmax(x): return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def choices(tap, case, folder):
    """Against the logits of context and choice, and a stride of 1 against whole windows."""
    rng, V = np.random.default_rng(3), case.config['vocab_size']
    take = lambda n: rng.integers(0, V - 1, n).tolist()
    rows = [{'context': take(rng.integers(1, 20)), 'choices': [take(rng.integers(1, 6)) for _ in range(3)], 'answer': int(rng.integers(3))} for _ in range(6)]
    rows += [{'context': [], 'choices': [take(2), take(3)]}]
    path, model, texts = lines(folder + '/q.jsonl', rows), final_folder(folder, case.name), []
    pairs = [((q['context'] or [case.config['eos_token_id']]), c) for q in rows for c in q['choices']]
    must('logits', model, lines(folder + '/pairs.jsonl', [{'ids': a + b} for a, b in pairs]), folder + '/pairs.h5', (1, 1, 1), '--dtype', 'float64')
    lp, _ = h5_logits(folder + '/pairs.h5')
    want = [log_softmax(lp[i, len(a) - 1:len(a) + len(b) - 1])[np.arange(len(b)), b].sum() for i, (a, b) in enumerate(pairs)]
    for layout in [(1, 1, 1), (3, 1, 1), (1, 2, 1)]:
        r = infer('nll', model, path, folder + '/answers.jsonl', layout, '--batch', 4)
        if r.returncode: tap.ok(0, f'choices {layout}: exit {r.returncode}: {last(r)}'); continue
        out = read(folder + '/answers.jsonl')
        with open(folder + '/answers.jsonl') as f: texts.append(f.read())
        sums = np.array([x for q in out for x in q['log_likelihoods']])
        per = np.array([x for q in out for x in q['per_token']])
        picks = all(q['pick'] == int(np.argmax(q['log_likelihoods'])) and q['pick_per_token'] == int(np.argmax(q['per_token'])) for q in out)
        right = sum(q['pick'] == q['answer'] for q in out if 'answer' in q) / 6
        tap.ok(abs(sums - want).max() < 1e-5 and abs(per * [len(b) for _, b in pairs] - sums).max() < 1e-9 and picks and
               f'accuracy {right:.4f} by sums' in r.stdout, f'choices {layout}: as by logits, {abs(sums - want).max():.1e}; accuracy {right:.2f}')
    tap.ok(len(set(texts[:2])) == 1, 'choices: the same bits for dp 1 and 3')
    # every token with all of its window before it
    n = 75; ids = np.fromfile(case.dir + '/tokens.u16', '<u2')[:n].astype(int); ids.astype('<u2').tofile(folder + '/s.raw')
    run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', V, '--eod', -1, '-o', folder + '/s.h5', folder + '/s.raw'])
    for stride in (1, 20):
        must('nll', model, folder + '/s.h5', folder + '/s.jsonl', (2, 1, 1), '--sequence-length', 32, '--stride', stride, '--each-token', '--document-mask', 'no')
        got = np.array(read(folder + '/s.jsonl')[0]['token_nll'][1:])
        first = [max(0, -(-(i - 32) // stride) * stride) for i in range(1, n)]      # of the window that scores token i
        windows = sorted(set(first))
        must('logits', model, lines(folder + '/w.jsonl', [{'ids': ids[a:a + 32].tolist()} for a in windows]), folder + '/w.h5', (1, 1, 1), '--dtype', 'float64')
        lp = log_softmax(h5_logits(folder + '/w.h5')[0])
        off = abs(got + [lp[windows.index(a), i - a - 1, ids[i]] for i, a in zip(range(1, n), first)]).max()
        tap.ok(off < 1e-5, f'stride {stride}: each token after those before it in its window, {off:.1e}')


# ---- generation ----

def greedy(tap, cases, folder):
    for i, case in enumerate(cases):
        g, model = GREEDY[case.name], final_folder(folder, case.name)
        path = lines(f'{folder}/p-{case.name}.jsonl', [{'ids': x} for x in g['prompts']])
        ways = [(x, ()) for x in layouts(case, i + 2, 1)] + ([((1, 2, 1), ('--no-cache', '--batch', 7))] if i % 3 == 0 or SOAK else [])
        for layout, more in ways:
            r = infer('generate', model, path, folder + '/g.jsonl', layout, '--max-new-tokens', g['max_new_tokens'], *more)
            if r.returncode: tap.ok(0, f'{case.name} greedy {layout}: exit {r.returncode}: {last(r)}'); continue
            out, eos = read(folder + '/g.jsonl'), case.config['eos_token_id']
            tap.ok([x['ids'] for x in out] == g['ids'] and [x['index'] for x in out] == list(range(20)) and
                   all(x['finish'] == ('eos' if x['ids'][-1] == eos else 'length') for x in out) and
                   [x['prompt_tokens'] for x in out] == [len(x) for x in g['prompts']] and 'text' not in out[0],
                   f'{case.name} greedy {layout} {" ".join(map(str, more))}: the tokens of transformers')


def draws(tap, case, folder):
    g, model = GREEDY[case.name], final_folder(folder, case.name)
    some = g['prompts'][:9]
    path, out = lines(folder + '/p.jsonl', [{'ids': x} for x in some]), folder + '/draws.jsonl'
    def ids(layout, *more, temperature=1.0):
        must('generate', model, path, out, layout, '--max-new-tokens', 12, '--temperature', temperature, *more)
        return [x['ids'] for x in read(out)]
    one = ids((1, 1, 1), '--seed', 7)
    tap.ok(ids((2, 1, 1), '--seed', 7, '--batch', 2) == one and ids((1, 2, 2), '--seed', 7, '--batch', 5) == one, 'draws do not depend on layout and batch')
    tap.ok(ids((1, 1, 1), '--seed', 8) != one and ids((1, 1, 2), '--seed', 7, '--no-cache') == one, 'but on the seed; not on kept keys')
    likely = [x['ids'] for x in infer('generate', model, path, out, (1, 1, 1), '--max-new-tokens', 12) and read(out)]
    tap.ok(ids((2, 1, 1), '--top-k', 1) == likely and ids((1, 1, 1), '--top-p', 0) == likely and ids((1, 1, 1), temperature=1e-5) == likely,
           'top-k 1, top-p 0 and a temperature near 0 are greedy')
    tap.ok(any(a != b for a, b in zip(one, likely)), 'a temperature of 1 is not')
    # more ranks than prompts; prompts as long as the model allows, and one that ends there
    long = [some[0] * 64, (some[1] * 64)[:63], some[2]]
    r = infer('generate', model, lines(folder + '/long.jsonl', [{'ids': x[:64]} for x in long]), out, (4, 1, 1), '--max-new-tokens', 5, '--batch', 1)
    tap.ok(r.returncode == 0 and [len(x['ids']) for x in read(out)][:2] == [0, 1] and read(out)[0]['finish'] == 'length',
           'four replicas for three prompts; nothing behind the last position' + (': ' + last(r) if r.returncode else ''))
    types = {t: [x['ids'] for x in (must('generate', model, path, out, (1, 2, 1), '--max-new-tokens', 4, '--dtype', t), read(out))[1]]
             for t in ('bfloat16', 'float16', 'float64')}
    tap.ok(types['float64'] == [x[:4] for x in likely] and all(len(x) for t in types.values() for x in t), 'bfloat16, float16 and float64 generate')


# ---- checkpoints, texts ----

TEXT = {'model_type': 'llama', 'hidden_size': 256, 'intermediate_size': 512, 'num_hidden_layers': 4, 'num_attention_heads': 4}


def checkpoint(tap, case, folder):
    """The trainer's own evaluation, its mask and type; its export."""
    d, n = folder + '/run', 4 * case.expected['sequence_length'] + 1
    np.fromfile(case.dir + '/tokens.u16', '<u2')[:n].tofile(folder + '/v.raw')
    docs = np.fromfile(case.dir + '/documents.i64', '<i8'); docs[docs < n].tofile(folder + '/v.docs')
    run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', case.config['vocab_size'], '--eod', case.expected['end_of_document'],
         '--documents', folder + '/v.docs', '-o', folder + '/v.h5', folder + '/v.raw'])
    r = run(['pretrain', case.deck(d, 2, 1, 2, steps=2, data={'validation': folder + '/v.h5'}, optim={'warmup_steps': 0},
                                   eval={'interval': 2, 'batches': 100})], n=4)
    if not tap.ok(r.returncode == 0, 'a run to evaluate' + (': ' + last(r) if r.returncode else '')): return
    want = metrics(d)[-1]['validation_loss']
    must('nll', newest(d), folder + '/v.h5', folder + '/v.jsonl', (1, 2, 1))
    got = mean(read(folder + '/v.jsonl'))
    tap.ok(relative(got, want) < LOSS['float32'], f"a checkpoint's likelihood is its run's validation loss, with its mask and length: {relative(got, want):.1e}")
    merged(d)
    path = lines(folder + '/c.jsonl', [{'ids': [1, 2, 3, 4]}])
    must('logits', newest(d), path, folder + '/a.safetensors', (1, 1, 2)); must('logits', d + '-hf', path, folder + '/b.safetensors', (1, 1, 2))
    a, b = safetensors(folder + '/a.safetensors'), safetensors(folder + '/b.safetensors')
    tap.ok(a['logits'].any() and (a['logits'] == b['logits']).all(), 'a checkpoint and its export have the same logits, to the bit')


def texts(tap, folder):
    """A model of bytes with two million weights: texts in, texts out; the memory of its weights alone."""
    with open(folder + '/t.txt', 'w') as f: f.write('the cat sat on the mat. ' * 200)
    run(['pretrain-data', 'tokenize', '--tokenizer', 'bytes', '-o', folder + '/t.h5', folder + '/t.txt'])
    r = run(['pretrain', deck(folder + '/t.nml', run={'directory': folder + '/t', 'threads': 1, 'device': 'cpu'},
                              train={'train_steps': 30, 'sequence_length': 32, 'global_batch_size': 8, 'micro_batch_size': 4}, model=TEXT,
                              data={'train': folder + '/t.h5'}, optim={'learning_rate': 2e-3}, checkpoint={'interval': 0})], n=2)
    if not tap.ok(r.returncode == 0, 'a run on text' + (': ' + last(r) if r.returncode else '')): return
    model, out = newest(folder + '/t'), folder + '/text.jsonl'
    global BYTES
    import h5py
    with h5py.File(folder + '/t.h5', 'r') as f: BYTES = bytes(f['tokenizer_json'][...]).decode()
    with open(folder + '/p.txt', 'w') as f: f.write('the cat sat on\n\nsat on the\r\non the mat. the ca')
    r = must('generate', model, [folder + '/p.txt'], out, (2, 1, 1), '--max-new-tokens', 11)
    told = [x['text'] for x in read(out)]
    tap.ok(len(told) == 3 and told[0].startswith(' the mat') and told[2].startswith('t sat on'), f'it goes on as it learnt: {told}')
    lines(folder + '/p.jsonl', [{'prompt': 'the cat sat on'}, {'ids': list(b'sat on the')}, {'prompt': ''}, {'prompt': 'a\0b\u00e9'}])
    must('generate', model, folder + '/p.jsonl', out, (1, 2, 1), '--max-new-tokens', 11)
    rows = read(out)
    tap.ok([x['text'] for x in rows[:2]] == told[:2] and [x['prompt_tokens'] for x in rows] == [14, 10, 1, 5],
           'from jsonl too; an empty prompt is the end of a document, a NUL and UTF-8 are bytes')
    q = [{'context': 'the cat sat on the', 'choices': [' mat', ' xyz'], 'answer': 0}, {'context': '', 'choices': ['the cat', 'q q q q'], 'answer': 0}]
    r = must('nll', model, lines(folder + '/q.jsonl', q), out, (2, 1, 1))
    tap.ok('accuracy 1.0000 by sums, 1.0000 by means' in r.stdout, 'texts to choose from')
    count = 257 * 256 * 2 + 4 * (4 * 256 * 256 + 3 * 256 * 512 + 2 * 256) + 256
    mib = lambda r: float(r.stdout.split('weights ')[1].split(',')[0])
    r16 = must('generate', model, folder + '/p.txt', out, (1, 1, 1), '--max-new-tokens', 3, '--dtype', 'bfloat16')
    r = must('nll', model, folder + '/q.jsonl', out)
    tap.ok(all(0 <= mib(x) - count * b / 2**20 < 0.1 for x, b in ((r, 4), (r16, 2))),
           f'memory: the weights once, in the type of compute: {mib(r)} and {mib(r16)} MiB of {count} weights')


def template(front, back):
    """A tokenizer.json of bytes that puts <s> before a text and <|endoftext|> behind it."""
    special = lambda id, content: {'id': id, 'content': content, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True}
    t = json.loads(BYTES)
    t['added_tokens'] = [special(256, '<|endoftext|>'), special(257, '<s>')]
    put = lambda name: {'SpecialToken': {'id': name, 'type_id': 0}}
    row = [put('<s>')] * front + [{'Sequence': {'id': 'A', 'type_id': 0}}] + [put('<|endoftext|>')] * back
    t['post_processor'] = {'type': 'TemplateProcessing', 'single': row, 'pair': row + [{'Sequence': {'id': 'B', 'type_id': 1}}],
                           'special_tokens': {n: {'id': n, 'ids': [i], 'tokens': [n]} for i, n in ((256, '<|endoftext|>'), (257, '<s>'))}}
    return json.dumps(t)


def templates(tap, folder):
    """Public bug B47, what a tokenizer puts round a text: before a prompt it stands once, behind it does not."""
    model = folder + '/template'
    hf_folder(model, {**T0, 'vocab_size': 258}, config={'eos_token_id': 256})
    def ids(rows, command='generate'):
        must(command, model, lines(folder + '/t.jsonl', rows), folder + '/t.out', (1, 1, 1), *(['--max-new-tokens', 6] if command == 'generate' else []))
        return read(folder + '/t.out')
    for front, back in ((0, 0), (1, 0), (1, 1), (0, 1)):
        with open(model + '/tokenizer.json', 'w') as f: f.write(template(front, back))
        start = [257] * front
        rows = ids([{'prompt': 'ab'}, {'ids': start + [97, 98]}, {'prompt': '<s>ab'}, {'ids': [257, 97, 98]}, {'prompt': ''}])
        tap.ok(rows[0]['ids'] == rows[1]['ids'] and rows[2]['ids'] == rows[3]['ids'] and
               [x['prompt_tokens'] for x in rows] == [2 + front, 2 + front, 3, 3, 1] and all('text' in x for x in rows),
               f'a template with {front} before and {back} behind: prompts {[x["prompt_tokens"] for x in rows]}')
        q = ids([{'context': 'ab', 'choices': ['c', 'de']}, {'context': start + [97, 98], 'choices': [[99], [100, 101]]}], 'nll')
        tap.ok(q[0]['log_likelihoods'] == q[1]['log_likelihoods'], '  and a choice has neither')
    with open(model + '/tokenizer.json', 'w') as f: f.write('{"model": {"type": "Unigram"}}')
    r = infer('generate', model, lines(folder + '/t.jsonl', [{'ids': [1, 2]}]), folder + '/t.out', (2, 1, 1), '--max-new-tokens', 2)
    tap.ok(r.returncode == 0 and 'warning' in r.stderr and 'text' not in read(folder + '/t.out')[0], 'a tokenizer that cannot be read: ids only, with a warning')
    r = infer('generate', model, lines(folder + '/t.jsonl', [{'prompt': 'a'}]), folder + '/t2.out', (2, 1, 1))
    tap.ok(r.returncode == 3 and 't.jsonl:1' in r.stderr and 'tokenizer.json' in r.stderr, 'and a text is refused' + f': {last(r)}')


# ---- ended early ----

def end_ranks(out, how):
    """Signals the ranks of the run that writes this file."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as f: words = f.read().split(b'\0')
            if os.fsencode(out) in words and words[0].endswith(b'/pretrain-infer'): os.kill(int(pid), how)
        except OSError: pass


def wait_for_parts(parts, ranks, bytes, process):
    for _ in range(2000):
        time.sleep(0.005)
        if process.poll() is not None: return False
        try: sizes = [os.path.getsize(f'{parts}/{x}') for x in os.listdir(parts) if x.startswith('part-')]
        except OSError: continue
        if len(sizes) == ranks and min(sizes) >= bytes: return True
    return False


def killed(tap, case, folder):
    """One window a unit, a window a token: enough units to be killed among."""
    out, data = folder + '/long-nll.jsonl', folder + '/long.h5'
    np.fromfile(case.dir + '/tokens.u16', '<u2')[:1800].tofile(folder + '/long.raw')
    run(['pretrain-data', 'import', '--dtype', 'uint16', '--vocab-size', case.config['vocab_size'], '--eod', -1, '-o', data, folder + '/long.raw'])
    common = ['nll', case.dir, data, '-o', out, '--threads', 1, '--device', 'cpu', '--batch', 1, '--sequence-length', 64, '--stride', 1, '--document-mask', 'no']
    start = lambda n: subprocess.Popen(MPIRUN + ['-np', str(n), os.path.join(BIN, 'pretrain-infer')] + [str(x) for x in common],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    r = run(['pretrain-infer', *common], n=2)
    with open(out) as f: whole = f.read()
    os.remove(out)
    p = start(2)
    seen = wait_for_parts(out + '.parts', 2, 1000, p)
    end_ranks(out, signal.SIGKILL); p.communicate(timeout=60)
    parts = [f'{out}.parts/{x}' for x in sorted(os.listdir(out + '.parts')) if x.startswith('part-')]
    tap.ok(r.returncode == 0 and seen and not os.path.exists(out) and len(parts) == 2, 'killed while it worked: parts, no result')
    with open(parts[0], 'r+b') as f: f.truncate(os.path.getsize(parts[0]) - 9)      # a record that was cut off
    with open(parts[1], 'r+b') as f: f.seek(200); f.write(b'\xff' * 8)              # a disk that lied: what follows is done again
    less = [x if x != 64 else 16 for x in common]
    r = run(['pretrain-infer', *less], n=1)
    tap.ok(r.returncode == 2 and 'another job' in r.stderr and r.stderr.count('pretrain-infer:') == 1, 'the parts of another job are refused')
    r = run(['pretrain-infer', *common], n=3)
    with open(out) as f: again = f.read()
    tap.ok(r.returncode == 0 and 'are done already' in r.stdout and again == whole and not os.path.exists(out + '.parts'),
           'it goes on, with another number of ranks, to the same bits' + (': ' + last(r) if r.returncode else ''))
    os.remove(out)
    p = start(2)
    seen = wait_for_parts(out + '.parts', 2, 1000, p)
    end_ranks(out, signal.SIGTERM)
    _, err = p.communicate(timeout=60)
    r = run(['pretrain-infer', *common], n=1)
    with open(out) as f: again = f.read()
    tap.ok(seen and p.returncode == 75 and 'start again to go on' in err and r.returncode == 0 and again == whole, f'asked to stop: exit 75 ({p.returncode}), then it goes on')


# ---- refused ----

def refused(tap, case, folder):
    ok = lines(folder + '/ok.jsonl', [{'ids': [1, 2, 3]}])
    def no(name, code, *texts, command='generate', model=case.dir, inputs=ok, out=folder + '/no.jsonl', layout=(1, 1, 1), more=()):
        r = infer(command, model, inputs, out, layout, *more)
        why = [f'exit {r.returncode}'] * (r.returncode != code) + [f'no "{t}"' for t in texts if t not in r.stderr]
        if r.stderr.count('pretrain-infer: ') != 1: why.append('voices')
        if os.path.exists(out): why.append('a result')
        tap.ok(not why, f'{name}' + (f': {why} {last(r)}' if why else ''))
    bad = lambda *rows: lines(folder + '/bad.jsonl', rows)
    raw = lambda text, name='bad.jsonl': open(f'{folder}/{name}', 'w').write(text) and f'{folder}/{name}'
    no('a long prompt, with its line', 3, 'bad.jsonl:2', '65 tokens', 'max_position_embeddings is 64', inputs=bad({'ids': [1]}, {'ids': [1] * 65}), layout=(2, 1, 1))
    no('an id that the model lacks', 3, 'bad.jsonl:1', f'0 .. {case.config["vocab_size"] - 1}', inputs=bad({'ids': [1, case.config['vocab_size']]}))
    no('no id', 3, 'bad.jsonl:1', inputs=bad({'ids': [1.5]}))
    no('a negative id', 3, 'bad.jsonl:1', inputs=bad({'ids': [-1]}))
    no('an empty list of a model that does not know its end', 3, 'no token', 'bad.jsonl:1', command='logits', inputs=bad({'ids': []}), out=folder + '/no.h5')
    no('neither prompt nor ids', 3, 'bad.jsonl:1', 'either', inputs=bad({'text': 'a'}))
    no('a text for a model without tokenizer', 2, 'ids only', 'bad.jsonl:1', inputs=bad({'prompt': 'a'}))
    no('not JSON', 3, 'bad.jsonl:2', inputs=raw('{"ids": [1]}\n{"ids": [1]\n'))
    no('an empty file', 3, 'empty', inputs=raw('', 'bad.jsonl') or folder + '/bad.jsonl')
    no('blank lines', 3, 'no prompt', inputs=raw('\n\n'))
    no('no such input', 3, 'absent.jsonl', inputs=folder + '/absent.jsonl')
    no('no model', 3, 'neither a checkpoint', model=folder)
    no('choices without a list', 3, 'choices', command='nll', inputs=bad({'context': [1]}))
    no('an answer that is no choice', 3, '"answer"', command='nll', inputs=bad({'context': [1], 'choices': [[1], [2]], 'answer': 2}))
    no('an empty choice', 3, 'choice 1 is empty', command='nll', inputs=bad({'context': [1], 'choices': [[1], []]}))
    no('a window beyond the positions', 2, '--sequence-length 65', command='nll', inputs=case.tokens, more=('--sequence-length', 65))
    no('a stride beyond the window', 2, '--stride', command='nll', inputs=case.tokens, more=('--sequence-length', 32, '--stride', 33))
    no('logits in a text file', 2, '.safetensors', command='logits', out=folder + '/no.txt')
    no('a tp that does not fit', 2, '`tp`', layout=(1, 3, 1))
    no('ranks that do not fit', 2, '-np', layout=(1, 1, 1), more=('--dp', 2))
    no('top-k without a temperature', 2, '--top-k', more=('--top-k', 3))
    r = infer('generate', case.dir, ok, ok)
    tap.ok(r.returncode == 2 and 'also an input' in r.stderr and read(ok)[0]['ids'] == [1, 2, 3], 'the input as output')


def main():
    tap, folder = Tap(), work('infer')
    cases = [Case(c, folder) for c in CASES]
    by = {c.name: c for c in cases}
    logits(tap, cases, folder)
    for name in CASES if SOAK else ('five',): likelihoods(tap, by[name], folder)
    choices(tap, by['gqa'], folder)
    greedy(tap, cases, folder)
    draws(tap, by['gqa'], folder)
    checkpoint(tap, by['five'], folder)
    texts(tap, folder)
    templates(tap, folder)
    killed(tap, by['gqa'], folder)
    refused(tap, by['gqa'], folder)
    tap.done()


if __name__ == '__main__': main()
