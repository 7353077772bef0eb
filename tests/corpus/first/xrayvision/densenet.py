"""torchxrayvision's DenseNet of chest X-rays, its scores calibrated by thresholds."""

import torch
from torchxrayvision.models import DenseNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DenseNet(growth_rate=8, block_config=(2, 4, 4, 2), num_init_features=16)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [1024 * torch.rand(1, 1, 224, 224)]


def get_init_inputs():
    return []
