"""AutoInt: self-attention over a record's fields, plus a deep part."""

import torch
from torchfm.model.afi import AutomaticFeatureInteractionModel


class Model(torch.nn.Module):
    def __init__(self, fields):
        super().__init__()
        self.net = AutomaticFeatureInteractionModel(fields, 16, 64, 2, 3, (64, 32), (0.2, 0.2, 0.2))

    def forward(self, categories):
        return self.net(categories)


def get_inputs():
    return [torch.stack([torch.randint(0, size, (64,)) for size in (100, 50, 7, 20)], dim=1)]


def get_init_inputs():
    return [[100, 50, 7, 20]]
