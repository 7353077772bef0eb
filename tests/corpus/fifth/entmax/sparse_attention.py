"""A transformer whose attention and output are sparse: alpha-entmax in place of softmax."""

import torch
from entmax import entmax15, entmax_bisect, sparsemax


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.alpha = torch.nn.Parameter(1.2 + 0.6 * torch.rand(1, heads, 1, 1))
        self.project = torch.nn.Linear(width, 3 * width)
        self.output = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        mixed = entmax_bisect(scores, alpha=self.alpha, dim=-1) @ value
        return x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = torch.nn.Embedding(3000, width)
        self.layers = torch.nn.ModuleList([Attention(width, 4) for _ in range(3)])
        self.pool = torch.nn.Linear(width, 1)
        self.head = torch.nn.Linear(width, 200)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        weight = sparsemax(self.pool(x), dim=1)
        return entmax15(self.head((weight * x).sum(1)), dim=-1), weight


def get_inputs():
    return [torch.randint(0, 3000, (4, 32))]


def get_init_inputs():
    return [128]
