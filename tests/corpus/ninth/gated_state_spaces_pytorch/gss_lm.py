"""Language model of gated state spaces, from gated_state_spaces_pytorch."""

import torch
from gated_state_spaces_pytorch import GatedStateSpacesLM
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = GatedStateSpacesLM(
            num_tokens=tokens, dim=dim, depth=depth, dss_kernel_N=256, dss_kernel_H=128
        )

    def forward(self, ids):
        return self.model(ids)


def get_inputs():
    return [torch.randint(0, 256, (1, 256))]


def get_init_inputs():
    return [256, 192, 4]
