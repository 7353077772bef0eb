"""Stack of invertible couplings from memcnn that keep no activations."""

import memcnn
import torch
from torch import nn


def branch(channels):
    return nn.Sequential(
        nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1)
    )


class Model(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        half = channels // 2
        self.blocks = nn.ModuleList()
        for i in range(depth):
            if i % 2:
                block = memcnn.AffineCoupling(
                    Fm=nn.Conv2d(half, channels, 3, padding=1),
                    Gm=nn.Conv2d(half, channels, 3, padding=1),
                    adapter=memcnn.models.affine.AffineAdapterSigmoid,
                )
            else:
                block = memcnn.AdditiveCoupling(Fm=branch(half), Gm=branch(half))
            self.blocks.append(
                memcnn.InvertibleModuleWrapper(block, keep_input=True, keep_input_inverse=True)
            )

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        y = x
        for block in reversed(self.blocks):
            y = block.inverse(y)
        return x, y


def get_inputs():
    return [torch.randn(2, 16, 32, 32)]


def get_init_inputs():
    return [16, 4]
