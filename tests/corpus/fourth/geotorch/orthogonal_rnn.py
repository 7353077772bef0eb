"""Recurrent network with a kernel kept orthogonal by a parametrization, with modReLU; and low-rank
and positive definite layers on top, as in the package's examples."""

import geotorch
import torch


class Model(torch.nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.kernel = torch.nn.Linear(hidden, hidden, bias=False)
        self.enter = torch.nn.Linear(inputs, hidden)
        self.bias = torch.nn.Parameter(torch.zeros(hidden))
        geotorch.orthogonal(self.kernel, "weight")
        self.low_rank = torch.nn.Linear(hidden, hidden)
        geotorch.low_rank(self.low_rank, "weight", rank=8)
        self.metric = torch.nn.Linear(hidden, hidden, bias=False)
        geotorch.positive_definite(self.metric, "weight")
        self.head = torch.nn.Linear(hidden, classes)

    def forward(self, sequence):
        state = sequence.new_zeros(sequence.shape[0], self.bias.shape[0])
        for step in sequence.unbind(1):
            state = self.enter(step) + self.kernel(state)
            state = torch.sign(state) * torch.relu(state.abs() + self.bias)
        features = self.low_rank(state)
        return self.head(state), (features * self.metric(features)).sum(-1)


def get_inputs():
    return [torch.randn(4, 32, 10)]


def get_init_inputs():
    return [10, 96, 10]
