"""ELIC: latents in uneven groups of channels, each with a checkerboard and a channel context."""

import torch
from compressai.models.sensetime import Elic2022Chandelier


class Model(torch.nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.net = Elic2022Chandelier(N=channels, M=sum(groups), groups=groups)

    def forward(self, image):
        out = self.net(image)
        return out["x_hat"], out["likelihoods"]["y"], out["likelihoods"]["z"]


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [32, [8, 8, 16, 32]]
