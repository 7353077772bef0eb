"""Wavelet features by ptwt: an image's three-level transform, a small convolutional network on each
level's details, and the image rebuilt from shrunk coefficients."""

import ptwt
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, wavelet, levels, classes):
        super().__init__()
        self.wavelet = wavelet
        self.levels = levels
        self.nets = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
            )
            for _ in range(levels)
        )
        self.head = nn.Linear(levels * 256, classes)

    def forward(self, image):
        coarse, *details = ptwt.wavedec2(image, self.wavelet, level=self.levels, mode="reflect")
        seen = [
            net(torch.stack(tuple(bands), dim=1))
            for net, bands in zip(self.nets, details, strict=True)
        ]
        shrunk = [
            ptwt.constants.WaveletDetailTuple2d(
                *(nn.functional.softshrink(band, 0.2) for band in bands)
            )
            for bands in details
        ]
        rebuilt = ptwt.waverec2((coarse, *shrunk), self.wavelet)
        return self.head(torch.cat(seen, dim=1)), rebuilt


def get_inputs():
    return [torch.randn(4, 64, 64)]


def get_init_inputs():
    return ["db2", 3, 10]
