"""Three attention-free mixers one after another, from aft-pt."""

import torch
from aft_pt import AFTFull, AFTLocal, AFTSimple
from torch import nn


class Model(nn.Module):
    def __init__(self, length, dim, hidden):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.mixers = nn.ModuleList(
            [
                AFTFull(max_seqlen=length, dim=dim, hidden_dim=hidden),
                AFTSimple(max_seqlen=length, dim=dim, hidden_dim=hidden),
                AFTLocal(max_seqlen=length, dim=dim, hidden_dim=hidden),
            ]
        )

    def forward(self, x):
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        return x


def get_inputs():
    return [torch.randn(2, 96, 128)]


def get_init_inputs():
    return [96, 128, 64]
