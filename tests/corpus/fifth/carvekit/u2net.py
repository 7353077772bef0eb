"""U2-Net: a nested U of U blocks for salient objects, with seven side outputs."""

import torch
from carvekit.ml.arch.u2net.u2net import U2NETArchitecture


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = U2NETArchitecture(cfg_type=size, out_ch=1)

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(1, 3, 160, 160)]


def get_init_inputs():
    return ["full"]
