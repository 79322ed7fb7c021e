"""device = 'cuda' under the emulation: a golden model's greedy continuations with kept keys, its likelihoods and logits, as on the CPU."""
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from infer import *

PROGRAM = 'tests/cuemu/pretrain-infer'


def main():
    tap, folder = Tap(), work('device')
    case = Case('gqa', folder)
    model, g = final_folder(folder, case.name), GREEDY[case.name]
    prompts = lines(folder + '/p.jsonl', [{'ids': x} for x in g['prompts'][:6]])

    def device(command, inputs, out, *more):
        r = run([PROGRAM, command, model, inputs, '-o', folder + out, '--tp', 2, '--pp', 2, '--threads', 1, '--device', 'cuda', *more], n=4,
                env={'CUEMU_DEVICES': '4'})
        return tap.ok(r.returncode == 0, f'{command} {" ".join(map(str, more))} runs' + (': ' + last(r) if r.returncode else ''))

    for dtype in ('float32', 'bfloat16') if SOAK else ('float32',):
        if device('generate', prompts, '/g.jsonl', '--max-new-tokens', 8, '--dtype', dtype):
            tap.ok([x['ids'] for x in read(folder + '/g.jsonl')] == [x[:8] for x in g['ids'][:6]], f'{dtype}: the tokens of transformers')
    ref = safetensors(case.dir + '/logits.safetensors')
    if device('logits', lines(folder + '/l.jsonl', [{'ids': ref['input_ids'][:20].tolist()}]), '/l.safetensors'):
        off = abs(safetensors(folder + '/l.safetensors')['logits'][0] - ref['final'][:20]).max()
        tap.ok(off <= LOGITS['float32'], f'golden logits: {off:.1e}')
    q = lines(folder + '/q.jsonl', [{'context': g['prompts'][2], 'choices': [[1, 2], [3]], 'answer': 0}])
    must('nll', model, q, folder + '/a.jsonl')
    if device('nll', q, '/b.jsonl'):
        a, b = (np.array(read(folder + x)[0]['log_likelihoods']) for x in ('/a.jsonl', '/b.jsonl'))
        tap.ok(abs(a - b).max() < 1e-5, f'log likelihoods: {abs(a - b).max():.1e}')
    tap.done()


if __name__ == '__main__': main()
