"""Language model with minGRU and attention side by side, from minGRU_pytorch."""

import torch
from minGRU_pytorch.hybridLM import hybridLM
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = hybridLM(num_tokens=tokens, dim=dim, depth=depth, heads=4, dim_head=32)

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 256, (2, 192))]


def get_init_inputs():
    return [256, 192, 4]
