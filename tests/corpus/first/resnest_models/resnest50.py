"""ResNeSt-50: bottlenecks of split attention."""

import torch
from resnest.torch import resnest50


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = resnest50(num_classes=10)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
