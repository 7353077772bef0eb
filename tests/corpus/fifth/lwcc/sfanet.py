"""SFANet: a count of the people in a crowd, with an attention map from a second decoder."""

import torch
from lwcc.models.SFANet import SFANet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SFANet()
        for layer in self.net.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(1, 3, 160, 160)]


def get_init_inputs():
    return []
