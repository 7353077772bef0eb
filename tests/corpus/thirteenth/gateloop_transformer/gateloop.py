"""GateLoop transformer: data-controlled linear recurrence."""

import torch
from gateloop_transformer import Transformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = Transformer(
            dim,
            num_tokens=500,
            depth=depth,
            use_gate_looped_attn=True,
            checkpoint_gate_looped_attn=False,
        )

    def forward(self, tokens):
        return self.model(tokens)


def get_inputs():
    return [torch.randint(0, 500, (2, 32))]


def get_init_inputs():
    return [192, 4]
