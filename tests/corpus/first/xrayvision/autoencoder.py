"""torchxrayvision's autoencoder of chest X-rays: ResNet down, transposed ResNet up."""

import torch
from torchxrayvision.autoencoders import Bottleneck, DeconvBottleneck, _ResNetAE


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = _ResNetAE(Bottleneck, DeconvBottleneck, [2, 2, 2, 2], 1)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 1, 224, 224)]


def get_init_inputs():
    return []
