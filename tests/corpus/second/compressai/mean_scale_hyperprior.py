"""A learned image codec: GDN transforms, a hyperprior for means and scales, likelihoods of the
rounded latents."""

import torch
from compressai.models.google import MeanScaleHyperprior


class Model(torch.nn.Module):
    def __init__(self, channels, latents):
        super().__init__()
        self.net = MeanScaleHyperprior(channels, latents)

    def forward(self, image):
        out = self.net(image)
        return out["x_hat"], out["likelihoods"]["y"], out["likelihoods"]["z"]


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [48, 64]
