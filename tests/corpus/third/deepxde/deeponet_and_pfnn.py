"""DeepXDE's DeepONet with two outputs whose branches and trunks are split, and a parallel MLP.

The parallel MLP has one sub-network per output; its inputs go through a Fourier feature transform
and its outputs through a hard boundary condition, as the package's users set them.
"""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde
import torch


class Model(torch.nn.Module):
    def __init__(self, sensors, width):
        super().__init__()
        self.operator = deepxde.nn.DeepONetCartesianProd(
            [sensors, width, width, 60],
            [2, width, width, 60],
            "tanh",
            "Glorot normal",
            num_outputs=2,
            multi_output_strategy="split_both",
        )
        self.flow = deepxde.nn.PFNN(
            [10, [width] * 3, [width] * 3, [width] * 3, 3], "sin", "He normal"
        )
        self.flow.apply_feature_transform(
            lambda x: torch.cat(
                [x] + [fun(k * x) for k in (1.0, 2.0) for fun in (torch.sin, torch.cos)], dim=1
            )
        )
        self.flow.apply_output_transform(lambda x, y: x[:, :1] * (1 - x[:, :1]) * y)

    def forward(self, functions, points):
        return self.operator((functions, points)), self.flow(points)


def get_inputs():
    return [torch.randn(6, 64), torch.rand(300, 2)]


def get_init_inputs():
    return [64, 96]
