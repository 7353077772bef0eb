"""Triangle multiplicative updates of a pair representation, as in AlphaFold 2."""

import torch
from torch import nn
from triangle_multiplicative_module import TriangleMultiplicativeModule


class Model(nn.Module):
    def __init__(self, dim, hidden, depth):
        super().__init__()
        self.outgoing = nn.ModuleList(
            [
                TriangleMultiplicativeModule(dim=dim, hidden_dim=hidden, mix="outgoing")
                for _ in range(depth)
            ]
        )
        self.ingoing = nn.ModuleList(
            [
                TriangleMultiplicativeModule(dim=dim, hidden_dim=hidden, mix="ingoing")
                for _ in range(depth)
            ]
        )

    def forward(self, pairs, mask):
        for outgoing, ingoing in zip(self.outgoing, self.ingoing, strict=False):
            pairs = pairs + outgoing(pairs, mask=mask)
            pairs = pairs + ingoing(pairs, mask=mask)
        return pairs


def get_inputs():
    return [torch.randn(1, 32, 32, 64), torch.ones(1, 32, 32).bool()]


def get_init_inputs():
    return [64, 96, 2]
