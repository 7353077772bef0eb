"""Optical flow with PWC-Net: a feature pyramid, warping by the flow of the level above, cost
volumes in a window, dense decoders and a context network of dilated convolutions."""

import torch
from ptlflow.models.pwcnet.pwcnet import PWCDCNet


class Model(torch.nn.Module):
    def __init__(self, displacement):
        super().__init__()
        self.net = PWCDCNet(md=displacement)

    def forward(self, images):
        return self.net({"images": images})["flows"]


def get_inputs():
    return [torch.rand(1, 2, 3, 128, 192)]


def get_init_inputs():
    return [4]
