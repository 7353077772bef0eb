"""RDN: residual dense network for super-resolution by 2."""

import torch
from torchsr.models import rdn_b


class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.net = rdn_b(scale=scale, pretrained=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 24, 32)]


def get_init_inputs():
    return [2]
