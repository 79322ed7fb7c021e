"""The model of step.sh in PyTorch, tuned: threads pinned, fused attention, fused AdamW, malloc without mmap. Prints tokens/s
(median step) as its last line. python step_torch.py eager|compiled"""
import os, sys
if os.environ.get('STEP_TORCH') != '1':     # threads and allocator are chosen before the interpreter starts
    os.environ.update(STEP_TORCH='1', OMP_NUM_THREADS='2', OMP_PROC_BIND='true', OMP_PLACES='cores', MALLOC_MMAP_MAX_='0',
                      MALLOC_TRIM_THRESHOLD_='100000000000', MALLOC_TOP_PAD_='2000000000')
    os.environ.pop('OPENBLAS_CORETYPE', None); os.environ.pop('OPENBLAS_L2_SIZE', None)
    os.execv(sys.executable, [sys.executable] + sys.argv)
import time
import torch, torch.nn as nn, torch.nn.functional as F

D, L, H, FF, V, S, B = 512, 8, 8, 1408, 32000, 512, 4
torch.manual_seed(0); torch.set_num_threads(2)


class Norm(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(D))
    def forward(self, x): return F.rms_norm(x, (D,), self.w, 1e-5)


angle = torch.outer(torch.arange(S).float(), 10000.0 ** (-torch.arange(0, D // H, 2).float() / (D // H)))
COS, SIN = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)


def rotate(x):
    a, b = x.chunk(2, -1)
    return x * COS + torch.cat([-b, a], -1) * SIN


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.n1, self.n2, self.qkv, self.o = Norm(), Norm(), lin(D, 3 * D), lin(D, D)
        self.gu, self.down = lin(D, 2 * FF), lin(FF, D)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).view(B, S, 3, H, D // H).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(B, S, D))
        g, u = self.gu(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(g) * u)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.blocks = nn.Embedding(V, D), nn.ModuleList(Block() for _ in range(L))
        self.n, self.head = Norm(), nn.Linear(D, V, bias=False)
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, std=0.02)

    def forward(self, ids, labels):
        x = self.e(ids)
        for b in self.blocks: x = b(x)
        return F.cross_entropy(self.head(self.n(x)).view(-1, V), labels.reshape(-1))


model = Model()
run = torch.compile(model) if sys.argv[1] == 'compiled' else model
optim = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
text = torch.randint(0, V, (B, S + 1)); times = []
for step in range(8):
    start = time.perf_counter()
    loss = run(text[:, :-1], text[:, 1:])
    optim.zero_grad(set_to_none=True); loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    times.append(time.perf_counter() - start)
times = sorted(times[2:])
print(B * S / times[len(times) // 2])
