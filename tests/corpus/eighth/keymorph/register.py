"""KeyMorph: keypoints of two volumes and the affine map between them."""

import torch
from keymorph.model import KeyMorph
from keymorph.net import ConvNet
from torch import nn


class Model(nn.Module):
    def __init__(self, keypoints):
        super().__init__()
        self.model = KeyMorph(ConvNet(3, 1, keypoints, "instance"), keypoints, 3)

    def forward(self, fixed, moving):
        out = self.model(fixed, moving, transform_type="affine", return_aligned_points=False)
        return tuple(v for v in out["affine"].values() if isinstance(v, torch.Tensor))


def get_inputs():
    return [torch.rand(1, 1, 48, 48, 48), torch.rand(1, 1, 48, 48, 48)]


def get_init_inputs():
    return [32]
