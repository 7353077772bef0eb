"""HACNN for finding people again: soft attention over places and channels, hard attention by
spatial transformers that cut four parts out of the picture, a global and a local branch."""

import torch
from torchreid.reid.models.hacnn import HACNN


class Model(torch.nn.Module):
    def __init__(self, people):
        super().__init__()
        self.net = HACNN(people, learn_region=True, use_gpu=False)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 160, 64)]


def get_init_inputs():
    return [60]
