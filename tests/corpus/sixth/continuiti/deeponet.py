"""DeepONet of continuiti: a function at its sensors and a place give the operator's value there."""

import torch
from continuiti.operators import DeepONet
from continuiti.operators.shape import OperatorShapes, TensorShape


class Model(torch.nn.Module):
    def __init__(self, sensors, width):
        super().__init__()
        shapes = OperatorShapes(
            x=TensorShape(dim=1, size=torch.Size([sensors])),
            u=TensorShape(dim=1, size=torch.Size([sensors])),
            y=TensorShape(dim=2, size=torch.Size([50])),
            v=TensorShape(dim=1, size=torch.Size([50])),
        )
        self.operator = DeepONet(
            shapes,
            branch_width=width,
            branch_depth=4,
            trunk_width=width,
            trunk_depth=4,
            basis_functions=32,
        )

    def forward(self, x, u, y):
        return self.operator(x, u, y)


def get_inputs():
    x = torch.linspace(0, 1, 40).expand(8, 1, 40)
    return [x, torch.sin(torch.rand(8, 1, 1) * 9 * x), torch.rand(8, 2, 50)]


def get_init_inputs():
    return [40, 64]
