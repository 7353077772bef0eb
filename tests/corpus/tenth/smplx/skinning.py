"""Linear blend skinning of a body with shape and pose, from smplx."""

import torch
from smplx.lbs import lbs
from torch import nn


class Model(nn.Module):
    def __init__(self, vertices, joints):
        super().__init__()
        self.register_buffer("template", torch.randn(vertices, 3))
        self.register_buffer("shapes", torch.randn(vertices, 3, 10))
        self.register_buffer("poses", 0.01 * torch.randn((joints - 1) * 9, vertices * 3))
        self.register_buffer("regressor", torch.rand(joints, vertices).softmax(1))
        self.register_buffer("weights", torch.randn(vertices, joints).softmax(1))
        parents = torch.arange(joints) // 2 - 1
        parents[1:] = (torch.arange(1, joints) - 1) // 2
        parents[0] = -1
        self.register_buffer("parents", parents)

    def forward(self, betas, pose):
        return lbs(
            betas,
            pose,
            self.template,
            self.shapes,
            self.poses,
            self.regressor,
            self.parents,
            self.weights,
        )


def get_inputs():
    return [torch.randn(2, 10), 0.3 * torch.randn(2, 48)]


def get_init_inputs():
    return [500, 16]
