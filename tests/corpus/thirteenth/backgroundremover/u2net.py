"""U2-Net (small): nested U-blocks for salient object segmentation."""

import torch
from backgroundremover.u2net.u2net import U2NETP
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.model = U2NETP(channels, 1)

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.rand(1, 3, 96, 96)]


def get_init_inputs():
    return [3]
