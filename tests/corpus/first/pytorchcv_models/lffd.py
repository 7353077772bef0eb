"""pytorchcv's LFFD: faces at five scales, without anchors."""

import torch
from pytorchcv.models.lffd import lffd20x5s320v2_widerface


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = lffd20x5s320v2_widerface()

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 320, 320)]


def get_init_inputs():
    return []
