"""Writes greedy.json: what transformers generates greedily after 20 prompts with the final weights of each golden case.

python make_greedy.py, with torch and transformers. Prompts where two tokens are nearly equally likely on the way are left out:
there, rounding decides."""
import json, os, shutil, tempfile
import numpy as np, torch
from transformers import AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, '../golden')
CASES = ['gqa', 'tied', 'llama3', 'qwen2', 'qwen3', 'five', 'bias']
PROMPTS, LONGEST, NEW, APART = 20, 40, 24, 1e-4    # APART: of the two largest logits, twenty times the tolerance of one


def load(case):
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(f'{GOLDEN}/{case}/config.json', d)
        shutil.copy(f'{GOLDEN}/{case}/final.safetensors', d + '/model.safetensors')
        return AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32).eval()


def greedy(model, prompt):
    """-> new tokens, or None if two are too close"""
    x = torch.tensor([prompt])
    out = model.generate(x, attention_mask=torch.ones_like(x), do_sample=False, max_new_tokens=NEW, return_dict_in_generate=True,
                         output_logits=True, pad_token_id=0)
    top = [torch.topk(row[0], 2).values for row in out.logits]
    return out.sequences[0, len(prompt):].tolist() if min((t[0] - t[1]).item() for t in top) > APART else None


def main():
    torch.set_num_threads(1)
    rng, out = np.random.default_rng(20), {}
    for case in CASES:
        model, prompts, ids = load(case), [], []
        V = model.config.vocab_size
        while len(prompts) < PROMPTS:
            n = 1 if not prompts else LONGEST if len(prompts) == 1 else int(rng.integers(2, LONGEST))
            prompt = rng.integers(0, V - 1, n).tolist()
            new = greedy(model, prompt)
            if new is not None: prompts.append(prompt); ids.append(new)
        out[case] = dict(max_new_tokens=NEW, prompts=prompts, ids=ids)
        print(case, len({tuple(x) for x in ids}), 'different answers,', sum(len(x) < NEW for x in ids), 'end early')
    with open(HERE + '/greedy.json', 'w') as f:
        f.write('{\n' + ',\n'.join(f'"{k}": {json.dumps(v)}' for k, v in out.items()) + '\n}\n')


if __name__ == '__main__': main()
