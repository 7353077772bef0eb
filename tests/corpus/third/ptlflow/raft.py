"""Optical flow with RAFT: correlation of all pairs in a pyramid, looked up around the present
flow, a convolutional GRU in six iterations and convex upsampling."""

import torch
from ptlflow.models.raft.raft import RAFT


class Model(torch.nn.Module):
    def __init__(self, iterations):
        super().__init__()
        self.net = RAFT(iters=iterations)

    def forward(self, images):
        return self.net({"images": images})["flows"]


def get_inputs():
    return [torch.rand(1, 2, 3, 128, 160)]


def get_init_inputs():
    return [6]
