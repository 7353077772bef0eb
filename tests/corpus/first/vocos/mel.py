"""vocos' vocoder: ConvNeXt blocks of mel frames, an inverse Fourier transform to the wave."""

import torch
from vocos.heads import ISTFTHead
from vocos.models import VocosBackbone


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.backbone = VocosBackbone(100, width, 3 * width, layers)
        self.head = ISTFTHead(width, 512, 128, padding="same")

    def forward(self, mel):
        return self.head(self.backbone(mel))


def get_inputs():
    return [torch.randn(1, 100, 80)]


def get_init_inputs():
    return [192, 4]
