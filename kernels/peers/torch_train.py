"""Measures training steps of PyTorch in eager mode on the shapes of exp bench: forward, backward,
AdamW, in float32. It prints tokens/s by the wall and per second of processor time.

    python torch_train.py 10M|50M THREADS BATCH LENGTH REPEAT

It needs torch (pip install torch). For exp: exp bench --model 50M --only train --threads N.
"""
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

SHAPES = {"10M": (8, 256, 4, 2, 1024, 8192), "50M": (12, 512, 8, 2, 2048, 8192)}
D = 64


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Layer(nn.Module):
    def __init__(self, c, h, k, f):
        super().__init__()
        self.h, self.k = h, k
        self.n1, self.n2 = nn.RMSNorm(c), nn.RMSNorm(c)
        self.qkv, self.o = nn.Linear(c, (h + 2 * k) * D), nn.Linear(h * D, c, bias=False)
        self.gate_up, self.down = nn.Linear(c, 2 * f, bias=False), nn.Linear(f, c, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, -1, D).transpose(1, 2).split((self.h, self.k, self.k), 1)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        gate, up = self.gate_up(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, layers, c, h, k, f, vocab):
        super().__init__()
        self.embed, self.norm = nn.Embedding(vocab, c), nn.RMSNorm(c)
        self.layers = nn.ModuleList(Layer(c, h, k, f) for _ in range(layers))
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, ids, cos, sin):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed.weight)


if __name__ == "__main__":
    name, threads, batch, length, repeat = sys.argv[1], *map(int, sys.argv[2:6])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Model(*SHAPES[name])
    update = torch.optim.AdamW(model.parameters(), lr=1e-4)
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, D, 2) / D)
    cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
    ids = torch.randint(SHAPES[name][5], (batch, length + 1))
    rows = []
    for turn in range(repeat + 1):
        u, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        loss = F.cross_entropy(model(ids[:, :-1], cos, sin).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        update.step()
        update.zero_grad()
        v = resource.getrusage(resource.RUSAGE_SELF)
        if turn:  # the first warms up
            rows.append((time.monotonic() - wall, v.ru_utime + v.ru_stime - u.ru_utime - u.ru_stime))
    wall, cpu = (statistics.median(r) for r in zip(*rows))
    print(f"PyTorch {torch.__version__} {name} threads={threads} train {batch} x {length}: "
          f"{batch * length / wall:.0f} tok/s, {batch * length / cpu:.0f} per processor second")
