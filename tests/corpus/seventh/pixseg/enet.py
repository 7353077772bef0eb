"""ENet of pixseg: asymmetric and dilated bottlenecks, max-unpooling with the encoder's indices."""

import torch
from pixseg.models.enet import ENet


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = ENet(num_classes=classes)

    def forward(self, image):
        return self.model(image)


def get_inputs():
    return [torch.randn(1, 3, 256, 256)]


def get_init_inputs():
    return [21]
