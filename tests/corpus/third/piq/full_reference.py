"""Quality of a restored picture against its reference, without learned weights: FSIM (log-Gabor
phase congruency), VSI (saliency), GMSD at many scales, MDSI, HaarPSI and DSS (blockwise DCT)."""

import torch
from piq import DSSLoss, FSIMLoss, HaarPSILoss, MDSILoss, MultiScaleGMSDLoss, VSILoss


class Model(torch.nn.Module):
    def __init__(self, reduction):
        super().__init__()
        self.metrics = torch.nn.ModuleList(
            [
                FSIMLoss(reduction=reduction, chromatic=True),
                VSILoss(reduction=reduction),
                MultiScaleGMSDLoss(reduction=reduction, chromatic=True),
                MDSILoss(reduction=reduction),
                HaarPSILoss(reduction=reduction),
                DSSLoss(reduction=reduction),
            ]
        )

    def forward(self, picture, reference):
        return torch.stack([metric(picture, reference) for metric in self.metrics], dim=-1)


def get_inputs():
    reference = torch.rand(2, 3, 128, 128)
    return [(reference + 0.1 * torch.randn(2, 3, 128, 128)).clamp(0, 1), reference]


def get_init_inputs():
    return ["none"]
