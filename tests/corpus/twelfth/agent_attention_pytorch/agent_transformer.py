"""Transformer with agent attention: agent tokens are carried along with the sequence."""

import torch
from agent_attention_pytorch import AgentTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = AgentTransformer(dim, num_agent_tokens=16, depth=depth, heads=4, dim_head=32)

    def forward(self, x):
        return self.model(x, return_agent_tokens=True)


def get_inputs():
    return [torch.randn(2, 64, 128)]


def get_init_inputs():
    return [128, 2]
