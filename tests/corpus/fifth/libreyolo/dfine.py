"""D-FINE: a detection transformer that refines the distribution of each edge of a box."""

import torch
from libreyolo.models.dfine.nn import LibreDFINEModel


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = LibreDFINEModel(config=size, nb_classes=80, eval_spatial_size=(320, 320))

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(1, 3, 320, 320)]


def get_init_inputs():
    return ["n"]
