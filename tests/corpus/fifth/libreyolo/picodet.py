"""PicoDet: a light detector with enhanced ShuffleNet blocks and a CSP pyramid."""

import torch
from libreyolo.models.picodet.nn import LibrePICODETModel


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = LibrePICODETModel(size=size, nb_classes=80)

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(1, 3, 256, 256)]


def get_init_inputs():
    return ["s"]
