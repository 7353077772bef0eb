"""MLP-Mixer for videos."""

import torch
from mlp_mixer_pytorch import MLPMixer3D
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = MLPMixer3D(
            image_size=(64, 32),
            time_size=4,
            time_patch_size=2,
            channels=3,
            patch_size=16,
            dim=dim,
            depth=depth,
            num_classes=50,
        )

    def forward(self, video):
        return self.model(video)


def get_inputs():
    return [torch.randn(1, 3, 4, 64, 32)]


def get_init_inputs():
    return [128, 4]
