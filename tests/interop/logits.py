"""transformers loads our exports and computes the golden logits: every case, trained on one rank and on four, merged, float32."""
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../golden'))
import numpy as np, torch
from transformers import AutoModelForCausalLM
from harness import Tap, Case, CASES, work, run, newest, safetensors, last

LOGITS = 5e-6       # absolute, float32 weights against a float64 run: as between transformers and that run


def difference(case, folder, layout):
    d = f'{folder}/{case.name}-{len(layout)}'
    r = run(['pretrain', case.deck(d, **layout)], n=layout.get('tp', 1) * layout.get('pp', 1))
    if r.returncode: return last(r)
    r = run(['pretrain-merge', newest(d), '-o', d + '-hf'])
    if r.returncode: return last(r)
    model, info = AutoModelForCausalLM.from_pretrained(d + '-hf', output_loading_info=True, dtype=torch.float32)
    if info['missing_keys'] or info['unexpected_keys']: return str(info)
    ref = safetensors(case.dir + '/logits.safetensors')
    with torch.no_grad():
        got = model.eval()(torch.tensor(ref['input_ids'].astype(np.int64))[None]).logits[0].double().numpy()
    off = abs(got - ref['final']).max()
    return '' if off <= LOGITS else f'off by {off:.1e}'


def main():
    tap, folder = Tap(), work('logits')
    for name in CASES:
        case = Case(name, folder)
        for layout in ({}, dict(tp=2, pp=2)):
            why = difference(case, folder, layout)
            tap.ok(not why, f'{name} {layout}' + (': ' + why if why else ''))
    tap.done()


if __name__ == '__main__': main()
