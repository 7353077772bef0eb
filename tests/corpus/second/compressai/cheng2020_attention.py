"""Cheng's codec: residual units, attention, subpixel convolutions, a masked convolution as
context model."""

import torch
from compressai.models.waseda import Cheng2020Attention


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = Cheng2020Attention(N=channels)

    def forward(self, image):
        out = self.net(image)
        return out["x_hat"], out["likelihoods"]["y"], out["likelihoods"]["z"]


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [48]
