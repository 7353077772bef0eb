"""Dual-tree complex wavelets: four levels of oriented subbands, soft thresholds with learned gains
on their magnitudes, and the inverse transform."""

import torch
from pytorch_wavelets import DTCWTForward, DTCWTInverse


class Model(torch.nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.forward_ = DTCWTForward(J=levels, biort="near_sym_b", qshift="qshift_b")
        self.inverse = DTCWTInverse(biort="near_sym_b", qshift="qshift_b")
        self.threshold = torch.nn.Parameter(torch.rand(levels, 6))

    def forward(self, image):
        low, bands = self.forward_(image)
        shrunk = []
        for band, threshold in zip(bands, self.threshold, strict=True):
            size = torch.sqrt(band.square().sum(-1, keepdim=True) + 1e-8)
            shrunk.append(band * torch.relu(1 - threshold.view(1, 1, 6, 1, 1, 1) / size))
        return self.inverse((low, shrunk)), low


def get_inputs():
    return [torch.randn(2, 3, 128, 128)]


def get_init_inputs():
    return [4]
