"""Mambular: every table column is a token, read by bidirectional Mamba blocks in plain PyTorch."""

import torch
from deeptab.architectures.mambular import Mambular
from deeptab.configs import MambularConfig


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        numbers = {f"n{i}": {"dimension": 12, "categories": None} for i in range(8)}
        categories = {f"c{i}": {"dimension": 1, "categories": 6 + i} for i in range(4)}
        self.net = Mambular(
            (numbers, categories, {}),
            num_classes=3,
            config=MambularConfig(
                d_model=width, n_layers=layers, bidirectional=True, d_state=16, d_conv=4
            ),
        )

    def forward(self, numbers, categories):
        return self.net(list(numbers.unbind(1)), list(categories[..., None].unbind(1)), [])


def get_inputs():
    return [torch.rand(32, 8, 12), torch.randint(0, 6, (32, 4))]


def get_init_inputs():
    return [64, 4]
