"""torchxrayvision's autoencoder of chest X-rays: ResNet down, transposed ResNet up."""

import torch
from torchxrayvision.autoencoders import Bottleneck, DeconvBottleneck, ResNetAE


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ResNetAE(
            downblock=Bottleneck, upblock=DeconvBottleneck, num_layers=[2, 2, 2, 2], num_classes=1
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
