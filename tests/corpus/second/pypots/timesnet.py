"""TimesNet: the strongest periods by FFT fold a series into images for inception blocks."""

import torch
from pypots.nn.modules.timesnet import BackboneTimesNet


class Model(torch.nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.embed = torch.nn.Linear(features, dim)
        self.backbone = BackboneTimesNet(2, 48, 0, 3, dim, 32, 3)
        self.head = torch.nn.Linear(dim, features)

    def forward(self, series):
        return self.head(self.backbone(self.embed(series)))


def get_inputs():
    return [torch.randn(2, 48, 7)]


def get_init_inputs():
    return [7, 32]
