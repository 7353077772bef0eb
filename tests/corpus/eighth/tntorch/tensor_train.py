"""A compressed field of tntorch: a tensor train, its gradient, sums and single entries."""

import tntorch as tn
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, side, rank):
        super().__init__()
        cores = tn.randn([side] * 4, ranks_tt=rank).cores
        self.cores = nn.ParameterList(nn.Parameter(core) for core in cores)

    def forward(self, index, weights):
        field = tn.Tensor(list(self.cores))
        picked = field[index[:, 0], index[:, 1], index[:, 2], index[:, 3]].torch()
        marginal = tn.sum(field, dim=[0, 1]).torch()
        square = (field * field).torch().mean((2, 3))
        return picked * weights, marginal, square


def get_inputs():
    return [torch.randint(0, 12, (64, 4)), torch.rand(64)]


def get_init_inputs():
    return [12, 5]
