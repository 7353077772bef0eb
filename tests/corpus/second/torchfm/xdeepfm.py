"""xDeepFM: a compressed interaction network beside a linear and a deep part."""

import torch
from torchfm.model.xdfm import ExtremeDeepFactorizationMachineModel


class Model(torch.nn.Module):
    def __init__(self, fields, dim):
        super().__init__()
        self.net = ExtremeDeepFactorizationMachineModel(
            fields, dim, (64, 32), 0.2, (32, 32), split_half=True
        )

    def forward(self, categories):
        return self.net(categories)


def get_inputs():
    return [torch.stack([torch.randint(0, size, (64,)) for size in (100, 50, 7, 20, 500)], dim=1)]


def get_init_inputs():
    return [[100, 50, 7, 20, 500], 16]
