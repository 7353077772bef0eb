"""BasicVSR: video super-resolution, optical flow by SpyNet, features carried both ways in time.

The package imports a torchvision module that is gone; as its users do, we give it the new one.
"""

import sys

import torch
import torchvision.transforms.functional as functional

sys.modules.setdefault("torchvision.transforms.functional_tensor", functional)

from basicsr.archs.basicvsr_arch import BasicVSR  # noqa: E402


class Model(torch.nn.Module):
    def __init__(self, features, blocks):
        super().__init__()
        self.net = BasicVSR(num_feat=features, num_block=blocks)

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.rand(1, 4, 3, 64, 64)]


def get_init_inputs():
    return [48, 6]
