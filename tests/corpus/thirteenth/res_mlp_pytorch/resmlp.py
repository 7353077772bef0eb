"""ResMLP image classifier."""

import torch
from res_mlp_pytorch import ResMLP
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = ResMLP(image_size=96, patch_size=8, dim=dim, depth=depth, num_classes=100)

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [192, 6]
