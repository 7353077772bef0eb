"""pytorchcv's FishNet-99: down, up and down again, features kept by concatenation."""

import torch
from pytorchcv.models.fishnet import fishnet99


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = fishnet99(num_classes=10)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return []
