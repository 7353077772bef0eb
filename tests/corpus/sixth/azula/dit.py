"""Diffusion transformer of azula over patches, modulated by a class and a time."""

import torch
from azula.nn.dit import DiT
from azula.nn.layers import Patchify, SineEncoding, Unpatchify


class Model(torch.nn.Module):
    def __init__(self, channels, classes, dim, blocks):
        super().__init__()
        self.patch = Patchify((4, 4), channel_last=True)
        self.unpatch = Unpatchify((4, 4), channel_last=True)
        self.label = torch.nn.Embedding(classes, dim)
        self.time = torch.nn.Sequential(SineEncoding(dim), torch.nn.Linear(dim, dim))
        self.dit = DiT(
            channels * 16,
            channels * 16,
            mod_features=dim,
            pos_channels=2,
            hid_channels=dim,
            hid_blocks=blocks,
            attention_heads=4,
        )

    def forward(self, image, time, label):
        patches = self.patch(image)
        height, width = patches.shape[1:3]
        place = torch.cartesian_prod(torch.arange(height), torch.arange(width)).float()
        tokens = self.dit(patches.flatten(1, 2), self.time(time) + self.label(label), pos=place)
        return self.unpatch(tokens.unflatten(1, (height, width)))


def get_inputs():
    return [torch.randn(2, 4, 32, 32), torch.rand(2), torch.randint(0, 10, (2,))]


def get_init_inputs():
    return [4, 10, 192, 6]
