"""Autoregressive flow with structured conditioners and a monotonic normaliser."""

import numpy
import torch
from strnn.models.discrete_flows.autoregressive_flow import (
    AutoregressiveFlow,
    AutoregressiveFlowStep,
)
from strnn.models.discrete_flows.conditioners.straf_conditioner import StrNNConditioner
from strnn.models.discrete_flows.normalizers.affine_normalizer import AffineNormalizer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        adjacency = numpy.tril(numpy.ones((8, 8)), -1)
        steps = [
            AutoregressiveFlowStep(
                StrNNConditioner(
                    8, (64, 64), 2, "relu", adjacency, "greedy", {"var_penalty_weight": 0.0}
                ),
                AffineNormalizer(),
            )
            for _ in range(3)
        ]
        self.model = AutoregressiveFlow(steps, False)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(32, 8)]


def get_init_inputs():
    return []
