"""CAFormer: convolutions in the first stages, attention in the last ones, star ReLU."""

import torch
from x_metaformer import CAFormer


class Model(torch.nn.Module):
    def __init__(self, depths, dims):
        super().__init__()
        self.net = CAFormer(in_channels=3, depths=depths, dims=dims, out_classes=100)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(2, 3, 128, 128)]


def get_init_inputs():
    return [(2, 2, 4, 2), (32, 64, 160, 256)]
