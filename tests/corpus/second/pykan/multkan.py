"""A KAN with multiplication nodes in its hidden layer."""

import torch
from kan import MultKAN


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = MultKAN(
            width=width,
            mult_arity=2,
            grid=4,
            k=3,
            seed=0,
            auto_save=False,
            save_act=False,
            symbolic_enabled=False,
        )

    def forward(self, x):
        return self.net(x)


def get_inputs():
    return [torch.rand(64, 3) * 2 - 1]


def get_init_inputs():
    return [[3, [5, 2], [3, 1], 1]]
