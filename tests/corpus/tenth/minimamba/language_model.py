"""Mamba language model in plain PyTorch, from minimamba."""

import torch
from minimamba.config import MambaLMConfig
from minimamba.models import MambaForCausalLM
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.model = MambaForCausalLM(MambaLMConfig(d_model=dim, n_layer=layers, vocab_size=500))

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 500, (2, 24))]


def get_init_inputs():
    return [96, 2]
