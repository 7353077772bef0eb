"""pytorchcv's octave ResNet: each convolution in two frequencies."""

import torch
from pytorchcv.models.octresnet import octresnet10_ad2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = octresnet10_ad2(num_classes=10)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return []
