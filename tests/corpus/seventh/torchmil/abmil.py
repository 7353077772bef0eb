"""Gated attention-based multiple-instance learning of torchmil on masked bags of patch features."""

import torch
from torchmil.models import ABMIL


class Model(torch.nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.model = ABMIL(in_shape=(features,), att_dim=width, att_act="tanh", gated=True)

    def forward(self, patches, mask):
        return self.model(patches, mask, return_att=True)


def get_inputs():
    lengths = torch.tensor([100, 64, 20, 81])
    return [torch.randn(4, 100, 1024), (torch.arange(100) < lengths[:, None]).float()]


def get_init_inputs():
    return [1024, 128]
