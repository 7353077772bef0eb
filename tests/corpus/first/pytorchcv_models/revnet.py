"""pytorchcv's RevNet-38: reversible blocks over two halves of the channels."""

import torch
from pytorchcv.models.revnet import revnet38


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = revnet38(num_classes=10)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return []
