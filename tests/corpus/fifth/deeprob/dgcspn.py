"""DGC-SPN: a deep generalised convolutional sum-product network; log-likelihood of images."""

import torch
from deeprob.spn.models import DgcSpn


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DgcSpn(
            (1, 28, 28),
            out_classes=10,
            n_batch=16,
            sum_channels=32,
            depthwise=True,
            n_pooling=2,
            optimize_scale=True,
            uniform_loc=(-1.5, 1.5),
        )

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(4, 1, 28, 28)]


def get_init_inputs():
    return []
