"""Interaction network over particles."""

import torch
from lumin.nn.models.blocks.gnn_blocks import InteractionNet
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = InteractionNet(
            n_v=16, n_fpv=6, intfunc_outs=[32, 16], outfunc_outs=[32, 8], bn=True
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(4, 6, 16)]


def get_init_inputs():
    return []
