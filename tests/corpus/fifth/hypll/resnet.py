"""A residual network in the Poincare ball: hyperbolic convolutions, norms and a linear head."""

import torch
from hypll import nn as hnn
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import TangentTensor


class Block(torch.nn.Module):
    def __init__(self, manifold, channels, out, stride):
        super().__init__()
        self.manifold = manifold
        self.conv1 = hnn.HConvolution2d(channels, out, 3, manifold, stride=stride, padding=1)
        self.norm1 = hnn.HBatchNorm2d(out, manifold)
        self.relu = hnn.HReLU(manifold)
        self.conv2 = hnn.HConvolution2d(out, out, 3, manifold, padding=1)
        self.norm2 = hnn.HBatchNorm2d(out, manifold)
        self.short = None
        if stride > 1 or channels != out:
            self.short = hnn.HConvolution2d(channels, out, 1, manifold, stride=stride)

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        short = x if self.short is None else self.short(x)
        return self.relu(self.manifold.mobius_add(short, y))


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.manifold = PoincareBall(Curvature(0.1, requires_grad=True))
        self.stem = hnn.HConvolution2d(3, 8, 3, self.manifold, padding=1)
        self.blocks = torch.nn.ModuleList(
            [
                Block(self.manifold, 8, 8, 1),
                Block(self.manifold, 8, 16, 2),
                Block(self.manifold, 16, 32, 2),
            ]
        )
        self.pool = hnn.HAvgPool2d(8, self.manifold)
        self.head = hnn.HLinear(32, classes, self.manifold)

    def forward(self, images):
        x = self.manifold.expmap(TangentTensor(images, manifold=self.manifold, man_dim=1))
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = self.pool(x)
        return self.head(x.squeeze(-1).squeeze(-1)).tensor


def get_inputs():
    return [0.3 * torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return [10]
