"""asteroid's SuDORMRFNet: U-ConvBlocks that separate two speakers."""

import torch
from asteroid.models import SuDORMRFNet


class Model(torch.nn.Module):
    def __init__(self, channels, blocks):
        super().__init__()
        self.net = SuDORMRFNet(2, bn_chan=channels, num_blocks=blocks, n_filters=64)

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 4000)]


def get_init_inputs():
    return [32, 4]
