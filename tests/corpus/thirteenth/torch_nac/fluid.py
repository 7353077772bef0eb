"""FLUID: an encoder-decoder transformer with liquid attention and hyper-connections."""

import torch
from torch import nn
from torch_nac.layers.FLUID import FLUID


class Model(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.model = FLUID(dim, heads, 2 * dim, topk=8, euler_steps=3, num_layers=1)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(2, 16, 64)]


def get_init_inputs():
    return [64, 4]
