"""U-Net with deep supervision that segments white matter bundles, from tractseg."""

import torch
from torch import nn
from tractseg.models.unet_pytorch_deepsup import UNet_Pytorch_DeepSup


class Model(nn.Module):
    def __init__(self, channels, bundles, filters):
        super().__init__()
        self.model = UNet_Pytorch_DeepSup(
            n_input_channels=channels, n_classes=bundles, n_filt=filters, batchnorm=False
        )

    def forward(self, peaks):
        return self.model(peaks)


def get_inputs():
    return [torch.randn(1, 9, 80, 80)]


def get_init_inputs():
    return [9, 72, 32]
