"""RAFT of ezflow, with few iterations."""

import torch
from ezflow.models import RAFT, get_default_model_cfg
from torch import nn


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        cfg = get_default_model_cfg(name)
        cfg.defrost()
        cfg.UPDATE_ITERS = 4
        self.model = RAFT(cfg)

    def forward(self, first, second):
        return self.model(first, second)


def get_inputs():
    return [torch.rand(1, 3, 128, 128) * 255, torch.rand(1, 3, 128, 128) * 255]


def get_init_inputs():
    return ["RAFT"]
