"""mambapy's Mamba: selective state spaces with a parallel scan written in PyTorch."""

import torch
from mambapy.mamba import Mamba, MambaConfig


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = torch.nn.Embedding(512, width)
        self.net = Mamba(MambaConfig(d_model=width, n_layers=layers))

    def forward(self, tokens):
        return self.net(self.embed(tokens)) @ self.embed.weight.T


def get_inputs():
    return [torch.randint(0, 512, (1, 64))]


def get_init_inputs():
    return [64, 3]
