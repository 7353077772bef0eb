"""Five measures of image quality from piqa on a restored and a true image."""

import piqa
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, reduction):
        super().__init__()
        self.restore = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 3, padding=1), nn.Sigmoid()
        )
        self.measures = nn.ModuleList(
            [
                piqa.FSIM(reduction=reduction),
                piqa.MS_GMSD(reduction=reduction),
                piqa.HaarPSI(reduction=reduction),
                piqa.MDSI(reduction=reduction),
                piqa.VSI(reduction=reduction),
            ]
        )

    def forward(self, degraded, clean):
        restored = self.restore(degraded)
        return restored, *(measure(restored, clean) for measure in self.measures)


def get_inputs():
    clean = torch.rand(2, 3, 160, 160)
    return [(clean + 0.1 * torch.randn_like(clean)).clamp(0, 1), clean]


def get_init_inputs():
    return ["none"]
