"""Programs that do what layers do not: each is captured, taken apart, and passes every gate."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest
import torch
from quantised_tensor import QUANTISED

from runner.emit import decompose
from runner.problems import read_problem
from runner.tree.document import Tree
from runner.verify import VerifyOptions, verify

pytestmark = pytest.mark.long

FILE = """\
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

{before}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

ODD: dict[str, dict[str, str]] = {
    "a gradient in forward": {
        "init": "self.fc, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)",
        "forward": "energy = lambda x: self.norm(self.fc(x)).tanh().sum()\n"
        "return torch.func.grad(energy)(x)",
    },
    "an attention whose kernel the author chooses": {
        "before": "from torch.nn.attention import SDPBackend, sdpa_kernel\n",
        "init": "self.qkv = nn.Linear(16, 48)",
        "forward": "q, k, v = self.qkv(x).view(1, -1, 3, 16).transpose(1, 2).unbind(1)\n"
        "with sdpa_kernel(SDPBackend.MATH):\n"
        "    return F.scaled_dot_product_attention(q, k, v)",
    },
    "weights that are computed from others": {
        "before": "from torch.nn.utils.parametrizations import orthogonal, spectral_norm\n",
        "init": "self.a = orthogonal(nn.Linear(16, 16))\nself.b = spectral_norm(nn.Linear(16, 16))",
        "forward": "return self.b(self.a(x).relu())",
    },
    "a table on a grid that stays on the CPU": {
        "before": "class Rope(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('periods', 10 ** torch.arange(4.0), persistent=False)\n"
        "    def forward(self):\n"
        "        rows, columns = torch.meshgrid(torch.arange(3.0), torch.arange(5.0))\n"
        "        grid = torch.stack((rows, columns), -1).flatten(0, 1)\n"
        "        angles = grid[:, :, None].to(self.periods.device) / self.periods\n"
        "        return torch.cat((angles.sin(), angles.cos()), -1).flatten(1)\n",
        "init": "self.rope, self.fc = Rope(), nn.Linear(16, 16)",
        "forward": "return self.fc(x) * self.rope()",
        "inputs": "torch.randn(2, 15, 16)",
    },
    "a buffer that the first call keeps, and steps that a device would take in another way": {
        "before": "class Codes(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('total', torch.rand(8, 16))\n"
        "        self.register_buffer('codes', None, persistent=False)\n"
        "    def forward(self, x):\n"
        "        if self.codes is None:\n"
        "            self.register_buffer('codes', self.total / 2, persistent=False)\n"
        "        return F.embedding(torch.cdist(x, self.codes).argmin(-1), self.codes)\n"
        "class Step(nn.Module):\n"
        "    def __init__(self, shift):\n        super().__init__()\n"
        "        self.fc, self.shift = nn.Linear(16, 16), shift\n"
        "    def forward(self, x):\n"
        "        return self.fc(x if x.device.type == 'cpu' else x + self.shift)\n",
        "init": "self.codes, self.steps = Codes(), nn.Sequential(*map(Step, range(8)))",
        "forward": "return self.steps(self.codes(x))",
    },
    "classes with the names of operations that they are not": {
        "before": "class Rope(nn.Module):\n    def forward(self, x):\n"
        "        return x.sin() + 2 * x.cos()\n"
        "class Softmax(nn.Module):\n    def forward(self, x):\n"
        "        return x.tanh() - x.mean(-1, keepdim=True)\n"
        "class ScaledDotProductAttention(nn.Module):\n    def forward(self, x):\n"
        "        return x.square() - x.abs()\n",
        "init": "self.a, self.b, self.c = Rope(), Softmax(), ScaledDotProductAttention()",
        "forward": "return self.a(torch.ones_like(x)) + self.c(self.b(x @ x.T) @ x)",
    },
    "views that torch declares no alias for": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "y = torch.atleast_2d(self.fc(x))\na, b = torch.hsplit(y, 2)\n"
        "return torch.cat((b, a), 1).relu()",
    },
    "a grid of two computed axes": {
        "init": "pass",
        "forward": "rows, columns = torch.meshgrid(x[0].sin(), x[:, 0].cos(), indexing='xy')\n"
        "return rows * columns + rows.T.sum()",
    },
    "a triangular system of equations": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "lower = torch.tril(self.fc.weight, -1) * (self.fc.weight > 0.2)\n"
        "return torch.linalg.solve_triangular(lower + torch.eye(16), x.t(), upper=False).t()",
    },
    "runs of equal numbers, counted": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "y = self.fc(x)\nkinds = torch.tensor([0, 0, 1, 2, 2, 2])\n"
        "found, counts = torch.unique_consecutive(kinds, return_counts=True)\n"
        "return y[:, : len(found)] * counts.to(y.dtype)",
    },
    "places that a computed mask of numbers chooses": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "near = torch.tril(torch.ones(8, 16)) * (torch.arange(16) % 3 > 0)\n"
        "rows, columns = near.nonzero(as_tuple=True)\n"
        "return self.fc(x)[:, columns] + rows",
    },
    "a branch that a value takes": {
        "init": "self.a = nn.Linear(16, 16)\nself.b = nn.Linear(16, 16)",
        "forward": "if x.sum() > 0:\n    return self.a(x).relu()\nreturn self.b(x).tanh()",
    },
    "a loop that values end": {
        "init": "self.step = nn.Linear(16, 16)",
        "forward": "n = 0\nwhile x.norm() > 0.5 and n < 9:\n"
        "    x, n = torch.tanh(self.step(x)) * 0.5, n + 1\nreturn x",
    },
    "torch.cond": {
        "forward": "return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,)) + 1"
    },
    "a number read and used": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "scale = x.abs().max().item()\nreturn self.a(x / scale)",
    },
    "a mean over lengths and one over a mask": {
        "init": "self.a = nn.Linear(16, 16)",
        "arguments": "x, lengths, mask",
        "inputs": "torch.randn(3, 8, 16), torch.tensor([3, 5, 8]), torch.ones(3, 8).bool()",
        "forward": "y = self.a(x).relu()\n"
        "whole = y.sum(1) / lengths[:, None]\n"
        "kept = (y * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)\n"
        "return whole.tanh(), kept, lengths.rsqrt()",
    },
    "lengths as a list": {
        "init": "self.a = nn.Linear(16, 16)",
        "arguments": "x, lengths",
        "inputs": "torch.randn(3, 8, 16), torch.tensor([3, 5, 8])",
        "forward": "parts = [self.a(x[i, :n]).mean(0) for i, n in enumerate(lengths.tolist())]\n"
        "return torch.stack(parts)",
    },
    "a boolean mask": {
        "init": "self.a = nn.Linear(16, 16)",
        "arguments": "x, mask",
        "inputs": "torch.randn(9, 16), torch.rand(9) > 0.5",
        "forward": "y = torch.zeros_like(x)\ny[mask] = self.a(x[mask])\nreturn y",
    },
    "a large boolean mask": {
        "arguments": "x",
        "inputs": "torch.randn(20, 16)",
        "forward": "mask = x > 0\nreturn x[mask].exp()",
    },
    "experts that take their tokens": {
        "init": "self.router = nn.Linear(16, 3)\n"
        "self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))",
        "forward": "weights, chosen = self.router(x).softmax(-1).topk(2)\n"
        "out = torch.zeros_like(x)\n"
        "for i, expert in enumerate(self.experts):\n"
        "    row, slot = torch.where(chosen == i)\n"
        "    out[row] += weights[row, slot, None] * expert(x[row])\n"
        "return out",
    },
    "packed sequences": {
        "init": "self.gru = nn.GRU(16, 8)",
        "arguments": "x, lengths",
        "inputs": "torch.randn(7, 3, 16), torch.tensor([7, 5, 2])",
        "forward": "packed = nn.utils.rnn.pack_padded_sequence(x, lengths)\n"
        "out, h = self.gru(packed)\n"
        "return nn.utils.rnn.pad_packed_sequence(out)[0], h[-1]",
    },
    "a tensor that a library caches": {
        "before": "import functools\n\n\n@functools.lru_cache\ndef table(n):\n"
        "    return torch.arange(n) * 0.5\n",
        "forward": "return torch.relu(x + table(16)) * 2",
    },
    "a product of groups": {
        "init": "self.w = nn.Parameter(torch.randn(3, 16, 8))",
        "arguments": "x, chosen",
        "inputs": "torch.randn(12, 16), torch.randint(0, 3, (12,))",
        "forward": "order = chosen.argsort()\n"
        "ends = torch.bincount(chosen, minlength=3).cumsum(0).to(torch.int32)\n"
        "return F.grouped_mm(x[order], self.w, offs=ends).relu()",
    },
    "a mask seen from another side": {
        "arguments": "x, chosen",
        "inputs": "torch.randn(40, 8), torch.randint(0, 4, (40,))",
        "forward": "mask = F.one_hot(chosen, 4).permute(1, 0)\n"
        "parts = [x[torch.where(rows)[0]].exp().sum(0) for rows in mask]\n"
        "where, _ = torch.where(mask)\nreturn torch.stack(parts), where.float() * 2",
    },
    "what nobody wrote": {
        "forward": "y = x.new_empty(4, 20)\ny[:, :16] = x.relu()\ny[:, 16:] = 1\nreturn y.exp()",
    },
    "numpy in between": {
        "forward": "order = x.sum(1).numpy().argsort()\n"
        "return x[torch.from_numpy(order)].cumsum(0).relu()",
    },
    "writes through views of views": {
        "forward": "y = x.clone()\ny[:, 1:3] += 1\ny[0].mul_(2)\ny.t()[2].add_(y.t()[3])\n"
        "y.view(2, 2, 16)[1, 0, ::2] = 5.0\nreturn y",
    },
    "parts that are all there is": {
        "forward": "y = x.clone()\ny[:1][0].mul_(2)\nz = y[None]\nz[0].sub_(x)\nz[0] = z[0] * x\n"
        "for n, row in enumerate(z.split(1)):\n"
        "    row[n].index_add_(0, torch.tensor([0, 3]), x[:2])\n"
        "return z.relu()",
    },
    "a constant of the file on two devices": {
        "before": "A = torch.tensor([[1.0, 1.0, 0.0, -1.0], [0.0, 1.0, -1.0, 0.5]])\n",
        "forward": "return A.to(x) @ x @ x.T @ A.to(x).T",
    },
    "parts of one table": {
        "init": "table = torch.stack([torch.arange(4), torch.arange(4).flip(0)])\n"
        "self.register_buffer('here', table[0])\nself.register_buffer('there', table[1])",
        "forward": "return x[self.here] - x[self.there]",
    },
    "named modules whose names begin with a digit": {
        "init": "parts = {k: nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))\n"
        "         for k in ('0_mean', '1_scale')}\n"
        "self.heads = nn.ModuleDict(parts)",
        "forward": "return {k: head(x) for k, head in self.heads.items()}",
    },
    "a weight of which only signs are used": {
        "init": "self.weight = nn.Parameter(torch.randn(8, 16))",
        "forward": "ones = torch.ones_like(self.weight)\n"
        "signs = torch.where(self.weight >= 0, ones, torch.full_like(self.weight, -1))\n"
        "return F.linear(x, signs).relu()",
    },
    "a codebook that is searched and looked up": {
        "init": "self.register_buffer('codes', torch.randn(32, 16))",
        "forward": "codes = self.codes.t()\n"
        "distance = x.pow(2).sum(1, keepdim=True) - 2 * x @ codes + codes.pow(2).sum(0)\n"
        "return F.embedding(distance.argmin(-1), self.codes)",
    },
    "steps between times of a table": {
        "before": "def step(part, start, end, x):\n"
        "    size = end - start\n"
        "    middle = x + size * part(x) / 2\n"
        "    return x + size * part(middle)\n",
        "init": "self.part = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 16))\n"
        "self.register_buffer('times', torch.linspace(0, 1, 4))",
        "forward": "for start, end in zip(self.times[:-1], self.times[1:]):\n"
        "    x = step(self.part, start, end, x)\n"
        "return x",
    },
    "a schedule that steps read by their numbers": {
        "init": "self.part = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 16))\n"
        "shares = torch.cos(torch.linspace(0, 1, 101) * 1.5) ** 2\n"
        "self.register_buffer('shares', shares.clamp(1e-4, 1))",
        "forward": "for now, then in ((99, 66), (66, 33), (33, 0)):\n"
        "    a, b = self.shares[now], self.shares[then]\n"
        "    noise = self.part(x)\n"
        "    clean = (x - (1 - a).sqrt() * noise) / a.sqrt()\n"
        "    x = b.sqrt() * clean + (1 - b).sqrt() * noise * b\n"
        "return x",
    },
    "as many tensors as arguments, but a tuple and a number among these": {
        "arguments": "x, states, scale",
        "init": "self.part = nn.LSTM(16, 8, batch_first=True)",
        "forward": "y, (h, c) = self.part(x, (states[0], states[1]))\nreturn y * scale, h + c",
        "inputs": "torch.randn(2, 5, 16), (torch.zeros(1, 2, 8), torch.ones(1, 2, 8)), 1.5",
    },
    "named parts for a profiler": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "with torch.profiler.record_function('a'):\n    y = self.a(x)\nreturn y.relu()",
    },
    "an input that is written into": {"forward": "x.add_(1)\nx[1:].relu_()\nreturn x * 2"},
    "windows that are written into": {
        "forward": "y = x.clone()\ny.unfold(1, 4, 4).mul_(0.5)\n"
        "torch.as_strided(y, (4, 4), (16, 5)).add_(1)\nreturn y.relu()",
    },
    "a cache at given places": {
        "init": "self.proj = nn.Linear(16, 16)\n"
        'self.register_buffer("cache", torch.zeros(2, 9, 16))',
        "arguments": "x, where",
        "inputs": "torch.randn(2, 3, 16), torch.tensor([4, 5, 6])",
        "forward": "self.cache[:, where] = self.proj(x)\nreturn self.cache[:, :7].relu()",
    },
    "a buffer that is replaced": {
        "init": 'self.register_buffer("state", torch.zeros(4, 16))\nself.a = nn.Linear(16, 16)',
        "forward": "self.state = 0.5 * self.state + self.a(x)\nreturn self.state.relu()",
    },
    "weights tied in three places": {
        "init": "self.embed = nn.Embedding(50, 16)\nself.body = nn.Linear(16, 16)\n"
        "self.head = nn.Linear(16, 50, bias=False)\nself.head.weight = self.embed.weight",
        "arguments": "a, b",
        "inputs": "torch.randint(0, 50, (2, 7)), torch.randint(0, 50, (2, 3))",
        "forward": "h = self.body(self.embed(a)).relu().sum(1, keepdim=True)\n"
        "return self.head(torch.tanh(self.body(self.embed(b)) + h))",
    },
    "tensors in lists and dicts": {
        "init": "self.a = nn.Linear(16, 16)\nself.scales = [torch.tensor(0.5), torch.rand(80)]\n"
        'self.more = {"bias": torch.randn(16)}',
        "forward": "y = self.a(x) * self.scales[0] + self.more['bias']\n"
        "return torch.relu(y) + self.scales[1][:16]",
    },
    "a dataclass in and out": {
        "before": "@dataclass\nclass Batch:\n    x: torch.Tensor\n    mask: torch.Tensor\n"
        "    scale: float = 2.0\n\n\n@dataclass\nclass Result:\n    y: torch.Tensor\n"
        "    more: object = None\n",
        "init": "self.a = nn.Linear(16, 4)",
        "arguments": "batch",
        "inputs": "Batch(torch.randn(4, 16), torch.ones(4, 1))",
        "forward": "h = batch.x * batch.mask * batch.scale\n"
        "return Result(self.a(h), {'hidden': h.relu()})",
    },
    "a configuration that does not tell all its fields": {
        "before": "@dataclass\nclass Config:\n    heads: int = 2\n    scale: float = 0.5\n\n"
        "    def __getattribute__(self, name):\n        if name == 'heads':\n"
        "            raise RuntimeError('ask each layer')\n"
        "        return super().__getattribute__(name)\n",
        "init": "self.config, self.a = Config(), nn.Linear(16, 4)",
        "forward": "return self.a(x).relu() * self.config.scale",
    },
    "a kernel that is first called with another layout than its trace shows": {
        "init": "self.conv = nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False)\n"
        "self.norm = nn.BatchNorm2d(32)\nself.q, self.out = nn.Linear(32, 32), nn.Linear(32, 32)",
        "inputs": "torch.randn(1, 256, 32)",
        "forward": "image = x.permute(0, 2, 1).view(1, 32, 16, 16)\n"
        "y = self.norm(self.conv(image)).view(1, 32, 256).permute(0, 2, 1)\n"
        "return self.out(self.q(y).relu())",
    },
    "a result that is returned twice": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "y = self.a(x).relu()\nreturn y, [x + y, y]",
    },
    "an object that is no container": {
        "before": "class Cache:\n    def __init__(self, keys):\n        self.keys = [keys]\n"
        "        self.dtype = keys.dtype\n",
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "y = self.a(x)\nreturn y.relu(), Cache(y.exp())",
    },
    "autocast": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = self.a(x)\n"
        "return y.float().softmax(-1)",
    },
    "inference mode": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "with torch.inference_mode():\n    return self.a(x).relu()",
    },
    "vmap": {
        "init": "self.w = nn.Parameter(torch.randn(3, 16, 8))",
        "forward": "return torch.func.vmap(lambda w: torch.tanh(x @ w))(self.w)",
    },
    "a gradient": {
        "init": "self.energy = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 1))",
        "forward": "with torch.enable_grad():\n    x = x.detach().requires_grad_(True)\n"
        "    (force,) = torch.autograd.grad(self.energy(x).sum(), x)\nreturn -force",
    },
    "a gradient through a norm, which autograd saved numbers for": {
        "init": "self.norm = nn.LayerNorm(16)",
        "forward": "with torch.enable_grad():\n    x = x.detach().requires_grad_(True)\n"
        "    return torch.autograd.grad(self.norm(x).square().sum(), x)[0]",
    },
    "random numbers with a seed": {
        "forward": "torch.manual_seed(7)\nnoise = torch.randn(4, 16)\n"
        "keep = torch.rand(16, generator=torch.Generator().manual_seed(3)) > 0.2\n"
        "return torch.relu(x + noise) * keep",
    },
    "numbers of 8 bits": {
        "forward": "s = x.abs().amax() / 448.0\nq = (x / s).to(torch.float8_e4m3fn)\n"
        "return q.to(torch.float32) * s, q",
    },
    "complex numbers": {
        "inputs": "torch.randn(4, 8, dtype=torch.complex64)",
        "forward": "return (x * x.conj()).real, x.imag.sum(), torch.matmul(x, x.mH)",
    },
    "a model made of half precision": {
        "init": "self.a = nn.Linear(16, 16)\n"
        "self.register_buffer('inv', 1.0 / (10.0 ** (torch.arange(0, 16) / 16)))\n"
        "self.inv.copy_(self.inv * 2)\nself.to(torch.bfloat16)",
        "inputs": "torch.randn(4, 16, dtype=torch.bfloat16)",
        "forward": "return torch.relu(self.a(x) * self.inv)",
    },
    "a root of a product, the weights of a graph": {
        "init": "self.a = nn.Linear(16, 8)",
        "arguments": "x, edges",
        "inputs": "torch.randn(9, 16), torch.randint(0, 9, (2, 40))",
        "forward": "s, d = edges\n"
        "deg = torch.zeros(9).scatter_add_(0, d, torch.ones(40)).clamp(min=1)\n"
        "m = self.a(x)[s] * (deg[s] * deg[d]).rsqrt()[:, None]\n"
        "return torch.zeros(9, 8).index_add_(0, d, m)",
    },
    "a spectrum of complex weights": {
        "init": "self.a = nn.Parameter(torch.randn(8, 4, dtype=torch.cfloat) * 0.1)\n"
        "self.c = nn.Parameter(torch.randn(8, 4, dtype=torch.cfloat))",
        "inputs": "torch.randn(2, 8, 32)",
        "forward": "powers = (self.a[..., None] * torch.arange(32)).exp()\n"
        "k = torch.einsum('hn,hnl->hl', self.c, powers).real\n"
        "y = torch.fft.rfft(x, n=64) * torch.fft.rfft(k, n=64)\n"
        "return torch.fft.irfft(y, n=64)[..., :32]",
    },
    "angles": {
        "init": "self.w = nn.Parameter(torch.randn(8, 16))",
        "forward": "c = F.linear(F.normalize(x), F.normalize(self.w)).clamp(-0.99, 0.99)\n"
        "far = torch.acosh(1 + x.square())\n"
        "return torch.cos(torch.arccos(c) + 0.5), far, torch.logit(torch.sigmoid(x))",
    },
    "weights computed from numbers, tables of hundreds": {
        "before": "import numpy as np\n\n\ndef sines(n, d):\n"
        "    angles = np.arange(n)[:, None] * np.exp(np.arange(d) / -d)\n"
        "    return torch.from_numpy(np.sin(angles).astype(np.float32))\n",
        "init": "self.conv = nn.Conv2d(2, 2, 3)",
        "inputs": "torch.randn(1, 2, 12, 12)",
        "forward": "sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])\n"
        "w = (sobel.flip(-1) / 8).expand(2, 1, 3, 3)\n"
        "n = torch.tensor(x.shape[1]) * 2 + 1\n"
        "edges = F.conv2d(x, w, padding=1, groups=2) / n + sines(12, 12)\n"
        "return torch.relu(self.conv(edges)) / n",
    },
    "logarithms of what must be positive": {
        "forward": "p = x.softmax(-1).mean(0)\n"
        "deg = (x > 0).sum(0).float().clamp(min=1).pow(-0.5)\n"
        "return torch.exp(-(p * (p + 1e-10).log()).sum()), deg, (x.square() / 2).sqrt() + 1",
    },
    "a padding mask that hides nothing": {
        "init": "self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 16)",
        "arguments": "x, lengths",
        "inputs": "torch.randn(2, 6, 16), torch.tensor([6, 6])",
        "forward": "mask = torch.arange(6, device=x.device)[None] >= lengths[:, None]\n"
        "scores = self.q(x) @ self.k(x).mT\n"
        "return scores.masked_fill(mask[:, None], float('-inf')).softmax(-1) @ x",
    },
    "rows of an expert, picked by a list": {
        "init": "self.gate, self.up = nn.Linear(16, 2), nn.Linear(16, 16)\n"
        "self.norm = nn.LayerNorm(16)",
        "inputs": "torch.randn(9, 16)",
        "forward": "for layer in range(2):\n"
        "    h = self.norm(x)\n    best = self.gate(h).argmax(-1)\n"
        "    (rows,) = torch.where(best == 0)\n"
        "    y = self.up(h[None, rows.tolist()].reshape(-1, 16)).relu()\n"
        "    x = x + torch.zeros_like(x).index_add(0, rows, y)\nreturn x",
    },
    "one row that a mask chooses": {
        "init": "self.a = nn.Linear(16, 16)",
        "inputs": "torch.cat((torch.full((1, 16), 2.0), torch.full((3, 16), -2.0)))",
        "forward": "far = x.mean(-1) > 1\ny = self.a(x)\ny[far] = x[far].exp()\n"
        "return y.relu() + 1",
    },
    "a sparse buffer that no forward reads": {
        "init": "self.a = nn.Linear(16, 16)\n"
        "self.register_buffer('table', torch.eye(4).to_sparse())",
        "forward": "return self.a(x).relu()",
    },
    "rows that are sorted, and put back into memory that nothing was written to": {
        "init": "self.gate, self.a = nn.Linear(16, 1), nn.Linear(16, 16)",
        "forward": "order = self.gate(x)[:, 0].argsort()\ny = self.a(x[order])\n"
        "back = torch.empty_like(order)\n"
        "back[order] = torch.arange(len(x), device=x.device)\nreturn y[back].relu()",
    },
    "columns that are written at two lists of places into memory that nothing was written to": {
        "init": "self.register_buffer('even', torch.arange(0, 16, 2))\n"
        "self.register_buffer('odd', torch.arange(1, 16, 2))",
        "forward": "y = torch.empty_like(x)\ny[:, self.even] = x[:, self.odd].exp()\n"
        "y[:, self.odd] = x[:, self.even] * 2\nreturn y.relu()",
    },
    "a table that forward loads from a file": {
        "before": dedent("""
            import io

            FILE = io.BytesIO()
            torch.save(torch.arange(16.0), FILE)
            TABLES = {}

            def table():
                if not TABLES:
                    FILE.seek(0)
                    TABLES["ramp"] = torch.load(FILE)
                return TABLES["ramp"]
        """),
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "return self.a(x) * table().to(x.dtype)",
    },
    "one row that is found by its value": {
        "before": dedent("""
            class Part(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.a = nn.Linear(16, 16)

                def forward(self, x):
                    far = (x.mean(-1) > 1).nonzero(as_tuple=True)[0]
                    y = self.a(x)
                    y[far, :] = x[far, :].exp()
                    return y.relu() + x
        """),
        "init": "self.parts = nn.ModuleList([Part(), Part()])",
        "inputs": "torch.randn(4, 16) + torch.tensor([[3.0], [0.0], [0.0], [0.0]])",
        "forward": "x = x * 1.5\nfor part in self.parts:\n    x = part(x)\nreturn x",
    },
    "the last of several writes to one row": {
        "init": "self.a = nn.Linear(16, 16)",
        "arguments": "x, rows",
        "inputs": "torch.randn(9000, 16), torch.randint(0, 100, (9000,))",
        "forward": "y = torch.zeros(100, 16, device=x.device)\ny[rows] = self.a(x)\n"
        "return y.relu()",
    },
    "results that are gathered on the CPU": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "rows = torch.zeros(4, 16)\nfor i in range(4):\n"
        "    rows[i] = self.a(x[i])\n"
        "y = torch.empty(2, 4, 16, device=x.device)\ny[0], y[1] = rows, x\n"
        "y[:, 0] = torch.arange(16.0)\nreturn y.relu(), rows",
    },
    "linear maps by numbers of forward": {
        "init": "self.a = nn.Linear(16, 3)",
        "forward": "w = torch.tensor([[0.4, 0.3, 0.1], [0.2, 0.7, 0.0], [0.0, 0.1, 0.9]])\n"
        "h = F.linear(self.a(x), w.to(x)).relu()\n"
        "return F.linear(h, w.to(x), torch.tensor([-16.0, 0.0, 0.0]).to(x))",
    },
    "a tensor that is filled with a parameter": {
        "init": "self.a = nn.Linear(16, 16)\n"
        "self.rest = nn.Parameter(torch.tensor(0.5), requires_grad=False)",
        "forward": "h = torch.full_like(x, self.rest)\nfor _ in range(2):\n"
        "    h = torch.tanh(h + self.a(x)) - self.rest\nreturn h",
    },
    "a buffer that is added to one place of a table": {
        "init": "self.a = nn.Linear(16, 16)\nself.register_buffer('c', torch.tensor(1.5))",
        "forward": "table = torch.zeros(16, device=x.device)\n"
        "table[0] += torch.einsum('->', self.c)\n"
        "return self.a(x) * self.c.clone() + table",
    },
    "results written into a part of another tensor": {
        "init": "self.a = nn.Linear(16, 16)",
        "forward": "h, y = self.a(x), x.new_empty(4, 33)\ny[:, :1] = 0\n"
        "torch.cumsum(h, 1, out=y[:, 1:17])\ntorch.sigmoid(h, out=y[:, 17:])\n"
        "values, places = h.new_empty(4, 3), torch.empty(4, 3, dtype=torch.long, device=x.device)\n"
        "torch.topk(h, 3, out=(values, places))\nreturn y.relu(), values + places",
    },
    "a weight that is masked in place": {
        "init": "self.a = nn.Linear(16, 16)\n"
        "self.register_buffer('mask', torch.ones(16, 16).tril())",
        "forward": "self.a.weight.data = self.a.weight.data * self.mask\nreturn self.a(x).relu()",
    },
    "parameters out of a dict": {
        "init": "self.scale = nn.Parameter(torch.rand(16))\nself.held = {'scale': self.scale}",
        "forward": "return torch.tanh(x * self.held['scale']) + 1",
    },
    "a dict that holds itself": {
        "init": "self.a = nn.Linear(16, 16)\nself.held = {'a': 1}\nself.held['self'] = self.held",
        "forward": "return self.a(x).relu()",
    },
    "a choice by torch.equal": {
        "init": "self.register_buffer('seen', torch.randn(4, 16))",
        "forward": "return x.tanh() if torch.equal(x, self.seen) else x.relu() + self.seen",
    },
    "a sum that begins with a number": {
        "init": "self.a = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))",
        "forward": "y = 0\nfor a in self.a:\n    y = torch.add(y, a(x).relu())\nreturn y",
    },
    "a graph without its loops": {
        "init": "self.a = nn.Linear(16, 16)",
        "arguments": "x, edges",
        "inputs": "torch.randn(9, 16), torch.randint(0, 9, (2, 50))",
        "forward": "edges = edges[:, edges[0] != edges[1]]\ny = self.a(x)[edges[0]]\n"
        "return torch.zeros_like(x).index_add(0, edges[1], y).relu()",
    },
    "a library that imported a question by name": {
        "before": "from torch.compiler import is_exporting\n",
        "forward": "if is_exporting():\n    return (x - x.mean()) / x.std()\n"
        "std, mean = torch.std_mean(x)\nreturn (x - mean) / std",
    },
    "a frozen weight of more dimensions": {
        "init": "self.a = nn.Parameter(torch.randn(16, 8), requires_grad=False)",
        "inputs": "torch.randn(2, 6, 1, 16).transpose(1, 2)",
        "forward": "return torch.matmul(x, self.a).relu()",
    },
    "a convolution that keeps the length": {
        "init": "self.a = nn.Conv1d(16, 16, 4, padding='same')",
        "inputs": "torch.randn(2, 16, 12)",
        "forward": "return self.a(x).relu()",
    },
    "a number that is returned": {
        "forward": "return x.relu(), torch.tensor(0.0), torch.tensor(2, device=x.device)",
    },
    "noise drawn into zeros": {
        "forward": "noise = torch.zeros_like(x).uniform_(0, 1)\n"
        "return (x - (-noise.log()).log()).relu()",
    },
    "an order that an object holds": {
        "before": "class Order:\n    def __init__(self):\n"
        "        self.places = torch.randperm(16)\n",
        "init": "self.order, self.a = Order(), nn.Linear(16, 16)",
        "forward": "return self.a(x[:, self.order.places])",
    },
    "a window that an object holds": {
        "before": "class Window:\n    def __init__(self):\n"
        "        self.window = torch.hann_window(16)\n",
        "init": "self.held, self.a = Window(), nn.Linear(16, 16)",
        "forward": "return self.a(x) / self.held.window.square().sum().clamp(1e-3)",
    },
    "another default dtype": {
        "init": "torch.set_default_dtype(torch.float64)\n"
        "self.a = nn.Linear(16, 16, dtype=torch.float32)",
        "inputs": "torch.randn(4, 16, dtype=torch.float32)",
        "forward": "return self.a(x).double() * torch.linspace(0, 1, 16)",
    },
    "a class with a name of torch's": {
        "before": "class F_(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(16, 16)\n    def forward(self, x):\n"
        "        return torch.tanh(self.a(x)).relu()\nF_.__name__ = F_.__qualname__ = 'F'\n",
        "init": "self.f, self.g = F_(), F_()",
        "forward": "return self.g(self.f(x)).relu()",
    },
    "an argument named as torch's tracer names its own": {
        "before": "class Scaled(nn.Linear):\n    def forward(self, x, *, mod):\n"
        "        return super().forward(x) * mod\n",
        "init": "self.a = Scaled(16, 16)",
        "forward": "return self.a(x, mod=x.sigmoid()).relu()",
    },
    "a part that is all of it, written in place": {
        "forward": "whole = x.relu()\npart = whole[:, 0:].view(8, 8)\npart += 1\n"
        "whole[:, 0:] = part.view(4, 16)\nreturn whole.tanh()",
    },
    "a mask that a loop fills with what is left out": {
        "init": "left_out = torch.ones(96, 96)\nfor i in range(96):\n"
        "    left_out[i, max(0, i - 40):i + 40] = 0\n"
        "self.register_buffer('left_out', left_out.bool(), persistent=False)",
        "inputs": "torch.randn(2, 48, 16)",
        "forward": "scores = (x @ x.mT).masked_fill(self.left_out[:48, :48], -torch.inf)\n"
        "return torch.softmax(scores, -1) @ x",
    },
    "indices that loops fill": {
        "init": "order = torch.zeros(20, 20, dtype=torch.long)\n"
        "for i in range(20):\n    for j in range(20):\n        order[i, j] = i * j % 30\n"
        "self.register_buffer('order', order)\nself.bias = nn.Parameter(torch.randn(30, 4))",
        "inputs": "torch.randn(2, 4, 20, 20)",
        "forward": "return (x + self.bias[self.order.view(-1)].view(20, 20, 4).permute(2, 0, 1))"
        ".relu()",
    },
    "keyword arguments alone": {
        "before": "def get_input_kwargs():\n"
        "    return {'text': torch.randn(2, 6), 'image': torch.randn(2, 8)}\n",
        "init": "self.a, self.b = nn.Linear(8, 4), nn.Linear(6, 4)",
        "arguments": "*, image, text",
        "inputs": "",
        "forward": "return self.a(image).relu() + self.b(text).tanh()",
    },
    "a named list that is joined, and nothing else": {
        "arguments": "x, y",
        "inputs": "torch.randn(4, 16), torch.randn(2, 16)",
        "forward": "parts = [x, y]\nreturn torch.cat(parts)",
    },
    "an argument that is a list and is called tensors": {
        "arguments": "tensors, dim=0",
        "inputs": "[torch.randn(4, 16), torch.randn(2, 16)], 0",
        "forward": "return torch.cat(tensors, dim)",
    },
    "a list of its own that is called tensors, beside an argument that is a list": {
        "init": "self.fcs = nn.ModuleList(nn.Linear(16, 16) for _ in range(6))",
        "arguments": "pair",
        "inputs": "[torch.randn(4, 16), torch.randn(4, 16)]",
        "forward": "tensors = []\nfor fc in self.fcs:\n    tensors.append(fc(pair[0]))\n"
        "    tensors.append(fc(pair[1]).relu())\nreturn torch.cat(tensors)",
    },
    "a product beside memory that nobody filled and nobody reads": {
        "init": "self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 16)",
        "inputs": "torch.randn(2, 6, 16)",
        "forward": "nothing = torch.empty(2, 6, 6, device=x.device)\n"
        "scores = torch.baddbmm(nothing, self.q(x), self.k(x).mT, beta=0, alpha=0.25)\n"
        "return scores.softmax(-1) @ x",
    },
    "a mask written into heads": {
        "init": "self.a = nn.Linear(16, 16)",
        "inputs": "torch.randn(2, 6, 16)",
        "forward": "v = self.a(x).view(2, 6, 4, 4).transpose(1, 2)\n"
        "v.masked_fill_(v > 1, 0.0)\n"
        "return torch.einsum('bhnd,bhne->bhde', v, v)",
    },
    "a program of what was trained": {
        "init": "self.register_buffer('c', torch.rand(16, 3))",
        "forward": "a, b, c = self.c[:, 0] + 1e-5, self.c[:, 1] + 1e-5, self.c[:, 2]\n"
        "s = torch.sqrt(a * b + c ** 2)\nt = torch.sqrt(a + b + 2 * s)\ni = 1 / (s * t)\n"
        "return x * ((b + s) * i) + x.flip(1) * ((a + s) * i) - c * i",
    },
    "weights and a constant that are loaded over those of the meta device": {
        "init": "with torch.device('meta'):\n"
        "    scale = torch.tensor(3.0)\n    self.a = nn.Linear(2, 2)\n"
        "loaded = torch.frombuffer(bytearray(range(24)), dtype=torch.float32)\n"
        "self.a.weight = nn.Parameter(loaded[:4].view(2, 2))\n"
        "self.a.bias = nn.Parameter(loaded[4:])\n"
        "self.register_buffer('scale', torch.empty_like(scale, device='cpu').fill_(-10.0))",
        "inputs": "torch.randn(2, 2)",
        "forward": "return self.a(x) * self.scale",
    },
    "parameters and a batch norm in lists": {
        "init": "self.weights = [nn.Parameter(torch.randn(16, 16)) for _ in range(2)]\n"
        "self.norms = [nn.BatchNorm1d(16) for _ in range(2)]",
        "forward": "for weight, norm in zip(self.weights, self.norms):\n"
        "    x = norm(x @ weight).relu()\nreturn x",
    },
    "a cache that begins empty": {
        "init": "self.q, self.k = nn.Linear(16, 16), nn.Linear(16, 16)",
        "inputs": "torch.randn(2, 6, 16)",
        "forward": "q, k = (a(x).view(2, 6, 2, 8).transpose(1, 2) for a in (self.q, self.k))\n"
        "k = torch.cat([torch.tensor([]), k], dim=-2)\n"
        "return F.scaled_dot_product_attention(q, k, k)",
    },
    "filters that are repeated": {
        "init": "self.a = nn.Parameter(torch.randn(1, 1, 3), requires_grad=False)",
        "inputs": "torch.randn(2, 16, 12)",
        "forward": "return F.conv1d(x, self.a.repeat(16, 1, 1), groups=16).relu()",
    },
    "data that is replaced where values steer": {
        "init": "self.a = nn.Linear(16, 16)\n"
        "self.register_buffer('mask', torch.ones(16, 16).tril())",
        "forward": "self.a.weight.data = self.a.weight.data * self.mask\n"
        "return self.a(x) if x.sum() < 1e6 else x",
    },
    "comparisons with a parameter on the right": {
        "init": "self.a = nn.Parameter(torch.randn(16))",
        "forward": "low, same = torch.le(x, self.a), torch.eq(x.round(), self.a)\n"
        "return x * low + x.sin() * torch.gt(self.a, x) + same",
    },
    "a mask that is expanded and picks": {
        "init": "self.token = nn.Parameter(torch.randn(16))",
        "arguments": "x, mask",
        "inputs": "torch.randn(6, 9, 16), torch.rand(6, 9) < 0.5",
        "forward": "wide = mask[..., None].expand(6, 9, 16)\ny = torch.zeros_like(x)\n"
        "y[wide] = x[wide].sin()\nreturn y + ~wide * self.token",
    },
    "writes into parts of complex numbers": {
        "forward": "z = torch.fft.rfft(x)\npower = (z.conj() * z).real\n"
        "power[:, 1:-1] *= 2\nz.imag[:, 0] += 1\ntorch.view_as_real(z)[..., 1] *= 3\n"
        "return power, torch.fft.irfft(z, n=16)",
    },
    "a batch of one whose stride a view changes": {
        "init": "self.register_buffer('w', torch.randn(16, 5))",
        "forward": "y = x[None].transpose(1, 2)\ny = y.view(y.shape) ** 2\n"
        "return torch.matmul(y.transpose(1, 2), self.w)",
    },
    "a module that only a plain object holds": {
        "before": "class Sampler:\n    def __init__(self, net):\n        self.net = net\n",
        "init": "net = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))\n"
        "self.sampler = Sampler(net)",
        "forward": "for _ in range(3):\n    x = x - 0.1 * self.sampler.net(x)\nreturn x",
    },
    "a tensor of a class of its own": {
        "before": "class Hyper(torch.Tensor):\n    def bundle(self, other):\n"
        "        return self + other\n",
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "return self.fc(x.as_subclass(Hyper)).bundle(x).tanh()",
    },
    "the best tags in lists of NumPy's numbers": {
        "init": "self.fc = nn.Linear(16, 5)",
        "forward": "scores = self.fc(x).softmax(-1)\n"
        "return scores, [[n for n in row.numpy()] for row in scores.argmax(-1, keepdim=True)]",
    },
    "places of a mask that are filled": {
        "init": "disc = [(i // 15 - 7) ** 2 + (i % 15 - 7) ** 2 < 40 for i in range(225)]\n"
        "self.discs, self.fc = [torch.tensor(disc)], nn.Linear(16, sum(disc))",
        "forward": "image = torch.zeros(4, 225)\nimage[:, self.discs[0]] = self.fc(x)\n"
        "return image.relu()",
    },
    "a factor of minus one times i": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "y = self.fc(x) * -1j\nreturn torch.view_as_real(y).flatten(1)",
    },
    "channels written the other way round": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "y = torch.zeros_like(x)\ny[:, :8] = self.fc(x)[:, :8]\ny[:, 8:] = x[:, 8:]\n"
        "z = torch.zeros_like(y)\nz[:, 8:] = y[:, :8]\nz[:, :8] = y[:, 8:]\nreturn z.relu()",
    },
    "an activation that blocks of modules without a forward use twice": {
        "before": "def block():\n    layer = nn.Module()\n    layer.a = nn.Linear(16, 16)\n"
        "    layer.b = nn.Linear(16, 16)\n"
        "    layer.act, layer.norm = nn.SiLU(), nn.RMSNorm(16)\n    return layer\n",
        "init": "self.layers = nn.ModuleList(block() for _ in range(3))",
        "forward": "for step in range(2):\n    for layer in self.layers:\n"
        "        y = layer.act(layer.a(layer.norm(x)))\n        x = x + layer.act(layer.b(y))\n"
        "return x",
    },
    "near neighbours that get_inputs counts": {
        "before": "def near():\n    place = torch.rand(12, 3)\n"
        "    return (torch.cdist(place, place) < 0.6).fill_diagonal_(False).nonzero().t()\n",
        "init": "self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)",
        "arguments": "x, edges",
        "inputs": "torch.randn(12, 16), near()",
        "forward": "for layer in (self.a, self.b):\n"
        "    x = torch.zeros_like(x).index_add(0, edges[1], layer(x)[edges[0]]).relu()\n"
        "return x",
    },
    "quantised weights of a tensor subclass": {
        "before": QUANTISED,
        "init": "self.fc, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)\n"
        "weight = self.fc.weight.detach()\n"
        "scale = weight.abs().amax(1, keepdim=True) / 127\n"
        "integers = torch.round(weight / scale).to(torch.int8)\n"
        "self.fc.weight = nn.Parameter(Quantised(integers, scale), requires_grad=False)",
        "forward": "return self.norm(torch.tanh(self.fc(x)))",
    },
    "an operator of many others, called by its name": {
        "init": "self.register_buffer('w', torch.hann_window(64))",
        "inputs": "torch.randn(2, 512)",
        "forward": "s = torch.stft(x, 64, 16, window=self.w, return_complex=True)\n"
        "s = s * torch.special.ndtr(s.abs())\n"
        "return torch.istft(s, 64, 16, window=self.w, length=512)",
    },
    "the largest of each group, and noise that chooses": {
        "init": "self.fc = nn.Linear(16, 8)",
        "arguments": "x, group",
        "inputs": "torch.randn(40, 16), torch.randint(0, 10, (40,))",
        "forward": "y, base = self.fc(x), torch.full((10, 8), -1e9)\n"
        "best = base.scatter_reduce(0, group[:, None].expand(40, 8), y, 'amax')\n"
        "return F.gumbel_softmax(best.clamp(min=0), hard=True)",
    },
    "a scripted part": {
        "init": "self.body = torch.jit.script(nn.Sequential(nn.Linear(16, 8), nn.ReLU()))",
        "forward": "return self.body(x).tanh()",
    },
    "two modules of one class in one line": {
        "before": "class Encoding(nn.Module):\n"
        "    def __init__(self, count):\n        super().__init__()\n"
        "        self.register_buffer('frequencies', 2.0 ** torch.arange(count))\n"
        "    def forward(self, x):\n"
        "        angles = x[..., None, :] * self.frequencies[:, None]\n"
        "        return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)\n",
        "init": "self.near, self.far = Encoding(6), Encoding(4)\nself.fc = nn.Linear(22, 16)",
        "forward": "for _ in range(2):\n"
        "    x = x + self.fc(torch.cat([self.near(x[:, :1]), self.far(x[:, 1:2])], -1))\n"
        "return x",
    },
    "variables with names that mean something to torch": {
        "init": "self.fc = nn.Linear(16, 16)",
        "forward": "grad = (x * x + self.fc(x) ** 2).sqrt().clamp(max=2.0) * 0.5\n"
        "numpy = self.fc(grad).relu() + grad.abs() * x.abs()\n"
        "storage = torch.relu(self.fc(numpy)) + grad\nreturn storage",
    },
    "a state that forward resets, updates and returns": {
        "init": "self.fc = nn.Linear(16, 16)\n"
        "self.register_buffer('voltage', torch.zeros(4, 16))\n"
        "self.register_buffer('spikes', torch.zeros(4, 16))\n"
        "self.register_buffer('rest', torch.tensor(-0.5))",
        "forward": "self.voltage.fill_(self.rest)\nself.spikes.zero_()\n"
        "for _ in range(3):\n"
        "    self.voltage.mul_(0.9).add_(self.fc(x) + self.spikes)\n"
        "    self.spikes = (self.voltage >= 0.2).float()\n"
        "    self.voltage.masked_fill_(self.spikes.bool(), -0.5)\n"
        "return self.voltage",
    },
    "indices that count from one": {
        "before": dedent("""
            class Heights(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.table = nn.Embedding(2, 16)

                def forward(self, heights):
                    return self.table((heights - 1).long())
        """),
        "init": "self.heights, self.fc = Heights(), nn.Linear(16, 16)",
        "forward": "heights = torch.ones(4, dtype=torch.int32, device=x.device)\n"
        "heights[1::2] += (x[::2, 0] > 9).int()\nreturn self.fc(x) * self.heights(heights)",
    },
    "memories of which masks fill places in turn": {
        "before": dedent("""
            class Memories(nn.Module):
                def forward(self, outputs, states):
                    chosen = outputs.softmax(0).max(0).indices
                    output, state = torch.zeros(4, 16), torch.zeros(4, 16)
                    for k in range(4):
                        mask = chosen == k
                        output[mask] = outputs[k][mask]
                        state[mask] = states[k][mask]
                    return output, state
        """),
        "init": "self.fc, self.out = nn.Linear(16, 64), nn.Linear(16, 16)\n"
        "self.memories = Memories()",
        "forward": "states = self.fc(x).view(4, 4, 16).transpose(0, 1)\n"
        "output, state = self.memories(states.tanh(), states)\nreturn self.out(output) + state",
    },
}


def decomposed(folder: Path, *, before: str = "", init: str = "pass", arguments: str = "x",
               inputs: str = "torch.randn(4, 16)", forward: str) -> Path:  # fmt: skip
    """A directory with the decomposition of a model written inline."""
    text = FILE.format(
        before=dedent(before),
        init=indent(init, " " * 8),
        arguments=arguments,
        inputs=inputs,
        forward=indent(forward, " " * 8),
    )
    (folder / "level3").mkdir()
    file = folder / "level3" / "odd.py"
    file.write_text(text, encoding="utf-8")
    decompose(read_problem(file), folder / "out")
    return folder / "out"


@pytest.fixture(autouse=True)
def default_dtype() -> Iterator[None]:
    """Put back what a program sets for the whole process."""
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


STRANGERS = (
    "weights that are computed from others",
    "a weight that is masked in place",
    "a grid of two computed axes",
    "vmap",
    "numbers of 8 bits",
    "experts that take their tokens",
    "a mask that a loop fills with what is left out",
    "indices that loops fill",
    "keyword arguments alone",
    "a cache that begins empty",
    "parameters and a batch norm in lists",
    "a named list that is joined, and nothing else",
    "an argument that is a list and is called tensors",
    "quantised weights of a tensor subclass",
    "a state that forward resets, updates and returns",
    "packed sequences",
    "a dataclass in and out",
    "places of a mask that are filled",
    "a mask seen from another side",
    "an operator of many others, called by its name",
    "the largest of each group, and noise that chooses",
    "a scripted part",
    "parts that are all there is",
    "named parts for a profiler",
    "named modules whose names begin with a digit",
    "a codebook that is searched and looked up",
    "steps between times of a table",
    "a schedule that steps read by their numbers",
    "a configuration that does not tell all its fields",
    "a constant of the file on two devices",
    "variables with names that mean something to torch",
    "two modules of one class in one line",
    "as many tensors as arguments, but a tuple and a number among these",
)
"""Programs whose directories are judged as strangers' too."""
assert {*STRANGERS} <= ODD.keys()


@pytest.mark.parametrize("what", ODD)
def test_it_passes_every_gate(tmp_path: Path, what: str) -> None:
    directory = decomposed(tmp_path, **ODD[what])
    verification = verify(directory, VerifyOptions(), trusted=True)
    assert verification.first_failure is None
    assert verification.status == "passed"
    if what in STRANGERS:
        assert verify(directory, VerifyOptions()).status == "passed"


def test_what_values_steered_is_said_and_compared_on_those_alone(tmp_path: Path) -> None:
    directory = decomposed(tmp_path, **ODD["a branch that a value takes"])
    (steered,) = Tree.read(directory).metadata.specialisations
    assert steered.endswith("a value was read as a number")
    verification = verify(directory, VerifyOptions(trials=3), trusted=True)
    assert verification.trials == 1
    assert any("holds for the values of seed 0" in note for note in verification.health)
    assert "seeds=(0,))" in (directory / "verification" / "composition_test.py").read_text()


def test_what_nothing_steered_is_compared_with_every_seed(tmp_path: Path) -> None:
    directory = decomposed(tmp_path, **ODD["a number read and used"])
    assert Tree.read(directory).metadata.specialisations == []
    assert verify(directory, VerifyOptions(trials=3), trusted=True).trials == 3


def test_a_value_that_leads_to_no_other_program_excuses_nothing(tmp_path: Path) -> None:
    directory = decomposed(
        tmp_path,
        init="self.scale = nn.Parameter(torch.ones(16))",
        forward="if torch.isnan(x).any():\n    raise ValueError('NaN')\n"
        "return x.relu() * self.scale",
    )
    assert Tree.read(directory).metadata.specialisations
    assert verify(directory, VerifyOptions()).status == "passed"
    files = [f for f in directory.rglob("*.py") if "* self.scale" in f.read_text()]
    for file in files:
        if file.name != "original.py":
            file.write_text(file.read_text().replace("* self.scale", "* self.scale[:1]"))
    assert len(files) > 1
    assert verify(directory, VerifyOptions()).status == "failed"


def test_parts_of_one_table_are_parts_in_the_file_as_well(tmp_path: Path) -> None:
    directory = decomposed(tmp_path, **ODD["parts of one table"])
    (text,) = [file.read_text() for file in directory.glob("level_3_model/*.py")]
    assert 'register_buffer("here", table[0])' in text
    assert 'register_buffer("there", table[1])' in text


def test_a_state_that_is_kept_for_the_next_call_is_said(tmp_path: Path) -> None:
    directory = decomposed(tmp_path, **ODD["a cache at given places"])
    (note,) = verify(directory, VerifyOptions(), trusted=True).health
    assert "original.py writes into its buffers (cache) for its next call" in note
