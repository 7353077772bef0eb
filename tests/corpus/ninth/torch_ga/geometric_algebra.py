"""Network of geometric products on multivectors of triangles, from torch_ga."""

import torch
from torch import nn
from torch_ga import GeometricAlgebra
from torch_ga.layers import (
    GeometricProductDense,
    GeometricSandwichProductDense,
    GeometricToTensor,
    TensorToGeometric,
)


class Model(nn.Module):
    def __init__(self, units):
        super().__init__()
        algebra = GeometricAlgebra([0, 1, 1, 1])
        blades = list(range(algebra.num_blades))
        vector = [2, 3, 4]
        self.lift = TensorToGeometric(algebra, blade_indices=vector)
        self.sandwich = GeometricSandwichProductDense(
            algebra, units=units, blade_indices_kernel=blades, blade_indices_bias=blades
        )
        self.product = GeometricProductDense(
            algebra, units=units, blade_indices_kernel=blades, blade_indices_bias=blades
        )
        self.drop = GeometricToTensor(algebra, blade_indices=vector)

    def forward(self, points):
        x = self.lift(points)
        x = torch.tanh(self.sandwich(x))
        return self.drop(self.product(x))


def get_inputs():
    return [torch.randn(16, 3, 3)]


def get_init_inputs():
    return [8]
