"""Fourier neural operator of continuiti in two dimensions, evaluated on the grid of its sensors."""

import torch
from continuiti.operators import FourierNeuralOperator
from continuiti.operators.shape import OperatorShapes, TensorShape


class Model(torch.nn.Module):
    def __init__(self, size, width, depth):
        super().__init__()
        grid = torch.Size([size, size])
        shapes = OperatorShapes(
            x=TensorShape(dim=2, size=grid),
            u=TensorShape(dim=1, size=grid),
            y=TensorShape(dim=2, size=grid),
            v=TensorShape(dim=1, size=grid),
        )
        self.operator = FourierNeuralOperator(shapes, depth=depth, width=width)

    def forward(self, x, u, y):
        return self.operator(x, u, y)


def get_inputs():
    line = torch.linspace(0, 1, 24)
    grid = torch.stack(torch.meshgrid(line, line, indexing="ij")).expand(2, 2, 24, 24)
    return [grid, torch.randn(2, 1, 24, 24), grid]


def get_init_inputs():
    return [24, 8, 3]
