"""Speaker embedding network from the TDNN layers of pytorch_tdnn, with statistics pooling."""

import torch
from pytorch_tdnn.tdnn import TDNN
from pytorch_tdnn.tdnnf import TDNNF
from torch import nn


class Model(nn.Module):
    def __init__(self, features, width, speakers):
        super().__init__()
        self.frames = nn.ModuleList(
            [
                TDNN(features, width, [-2, 2]),
                TDNN(width, width, [-2, 0, 2]),
                TDNN(width, width, [-3, 0, 3]),
            ]
        )
        self.factored = nn.ModuleList(
            TDNNF(width, width, width // 4, time_stride=stride) for stride in (1, 1, 3)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(6))
        self.embedding = nn.Linear(2 * width, 192)
        self.head = nn.Linear(192, speakers)

    def forward(self, x):
        for layer, norm in zip(self.frames, self.norms[:3], strict=False):
            x = norm(torch.relu(layer(x)))
        for layer, norm in zip(self.factored, self.norms[3:], strict=False):
            x = norm(torch.relu(layer(x, semi_ortho_step=False)))
        stats = torch.cat([x.mean(2), x.std(2)], 1)
        return self.head(torch.relu(self.embedding(stats)))


def get_inputs():
    return [torch.randn(4, 40, 300)]


def get_init_inputs():
    return [40, 256, 500]
