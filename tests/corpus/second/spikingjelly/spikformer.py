"""Spikformer: attention without softmax over spikes, 4 time steps."""

import torch
from spikingjelly.activation_based import functional
from spikingjelly.activation_based.model.spikformer import Spikformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = Spikformer(
            T=4,
            img_size_h=32,
            img_size_w=32,
            patch_size=4,
            num_classes=10,
            embed_dims=dim,
            num_heads=4,
            depths=depth,
        )
        for module in self.net.modules():  # without training, larger gains let spikes through
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                torch.nn.init.constant_(module.weight, 6.0)

    def forward(self, image):
        functional.reset_net(self.net)
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 32, 32)]


def get_init_inputs():
    return [128, 2]
