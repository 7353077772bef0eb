import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class FeedForward(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.gate = nn.Linear(dim, 2 * dim, bias=False)
        self.up = nn.Linear(dim, 2 * dim, bias=False)
        self.down = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.feed_forward = FeedForward(dim)

    def forward(self, x):
        return x + self.feed_forward(self.norm(x))


class Model(nn.Module):
    """Blocks on values with heavy tails."""

    def __init__(self, dim: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(2))
        self.head = nn.Linear(dim, 16)

    def forward(self, x):
        x = x**3
        for block in self.blocks:
            x = block(x)
        return torch.softmax(self.head(x), dim=-1)


def get_inputs():
    return [torch.randn(8, 32, 64)]


def get_init_inputs():
    return [64]
