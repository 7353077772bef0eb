"""A 1-Lipschitz network: spectral convolutions, GroupSort and scaled pooling."""

import torch
from deel import torchlip


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = torchlip.Sequential(
            torchlip.SpectralConv2d(3, 32, 3, padding=1),
            torchlip.GroupSort2(),
            torchlip.SpectralConv2d(32, 32, 3, padding=1),
            torchlip.GroupSort2(),
            torchlip.ScaledL2NormPool2d(2),
            torchlip.SpectralConv2d(32, 64, 3, padding=1),
            torchlip.GroupSort(8),
            torchlip.InvertibleDownSampling(2),
            torchlip.SpectralConv2d(256, 64, 3, padding=1),
            torchlip.FullSort(),
            torchlip.ScaledAdaptiveAvgPool2d((1, 1)),
            torch.nn.Flatten(),
            torchlip.SpectralLinear(64, 64),
            torchlip.GroupSort2(),
            torchlip.FrobeniusLinear(64, classes, disjoint_neurons=True),
            k_coef_lip=1.0,
        )

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(4, 3, 32, 32)]


def get_init_inputs():
    return [10]
