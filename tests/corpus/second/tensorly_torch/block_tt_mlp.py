"""A perceptron whose weights are block tensor trains over factorized features."""

import tltorch
import torch


class Model(torch.nn.Module):
    def __init__(self, shape, factorization):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            tltorch.FactorizedLinear(shape, shape, bias=True, factorization=factorization, rank=0.4)
            for _ in range(3)
        )
        for layer in self.layers:
            layer.weight.normal_(0, 0.05)

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x)) + x
        return x


def get_inputs():
    return [torch.randn(16, 128)]


def get_init_inputs():
    return [(4, 4, 8), "blocktt"]
