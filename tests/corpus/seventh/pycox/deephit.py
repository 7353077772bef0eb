"""DeepHit of pycox for two competing risks: a shared network, one per risk, and the chance of each
risk in each interval of time; cumulative incidence."""

import torch
import torchtuples
from pycox.models.utils import pad_col
from torch import nn


class Model(nn.Module):
    def __init__(self, features, risks, times):
        super().__init__()
        self.risks = risks
        self.shared = torchtuples.practical.MLPVanilla(features, [64], 64, True, 0.1)
        self.heads = nn.ModuleList(
            torchtuples.practical.MLPVanilla(64, [32], times, True, 0.1) for _ in range(risks)
        )

    def forward(self, rows):
        seen = torch.relu(self.shared(rows))
        scores = torch.stack([head(seen) for head in self.heads], dim=1)
        mass = pad_col(scores.flatten(1)).softmax(dim=1)[:, :-1]
        return mass.unflatten(1, (self.risks, -1)).cumsum(dim=2)


def get_inputs():
    return [torch.randn(128, 21)]


def get_init_inputs():
    return [21, 2, 20]
