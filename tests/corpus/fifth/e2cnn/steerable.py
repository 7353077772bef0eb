"""A steerable CNN: features of the cyclic group of eight turns, with pooling over the group."""

import torch
from e2cnn import gspaces
from e2cnn import nn as enn


class Model(torch.nn.Module):
    def __init__(self, turns):
        super().__init__()
        space = gspaces.Rot2dOnR2(N=turns)
        self.kind = enn.FieldType(space, [space.trivial_repr])
        kinds = [enn.FieldType(space, n * [space.regular_repr]) for n in (12, 24, 24)]
        blocks, before = [], self.kind
        for kind in kinds:
            blocks += [
                enn.R2Conv(before, kind, kernel_size=5, padding=2, bias=False),
                enn.InnerBatchNorm(kind),
                enn.ReLU(kind, inplace=True),
                enn.PointwiseAvgPoolAntialiased(kind, sigma=0.66, stride=2),
            ]
            before = kind
        self.net = enn.SequentialModule(*blocks, enn.GroupPooling(before))
        self.head = torch.nn.Linear(24, 10)

    def forward(self, images):
        x = self.net(enn.GeometricTensor(images, self.kind)).tensor
        return self.head(x.mean((2, 3)))


def get_inputs():
    return [torch.randn(2, 1, 29, 29)]


def get_init_inputs():
    return [8]
