"""NinaSR-B0: super-resolution by residual blocks with gated attention."""

import torch
from torchsr.models import ninasr_b0


class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.net = ninasr_b0(scale=scale, pretrained=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 64, 48)]


def get_init_inputs():
    return [3]
