"""torchgfn: the path integral sampler network of a diffusion GFlowNet."""

import torch
from gfn.utils.modules import DiffusionPISGradNetForward
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.model = DiffusionPISGradNetForward(
            s_dim=dim,
            harmonics_dim=hidden,
            t_emb_dim=hidden,
            s_emb_dim=hidden,
            hidden_dim=hidden,
            joint_layers=3,
            learn_variance=True,
            clipping=True,
        )

    def forward(self, states):
        return self.model(states)


def get_inputs():
    return [torch.rand(64, 3)]


def get_init_inputs():
    return [2, 128]
