"""Trompt for tables: prompts that weigh the columns in six cells, with encoders of numbers and
categories for each."""

import torch
import torch_frame
from torch_frame.data.stats import StatType
from torch_frame.nn.models import Trompt

NUMBERS = [f"n{i}" for i in range(6)]
KINDS = ["color", "shape"]


def statistics():
    number = {
        StatType.MEAN: 0.0,
        StatType.STD: 1.0,
        StatType.QUANTILES: [-2.0, -0.7, 0.0, 0.7, 2.0],
    }
    kind = {StatType.COUNT: (list("abcde"), [10, 8, 6, 4, 2])}
    return dict.fromkeys(NUMBERS, number) | dict.fromkeys(KINDS, kind)


class Model(torch.nn.Module):
    def __init__(self, channels, prompts, layers):
        super().__init__()
        self.names = {torch_frame.numerical: NUMBERS, torch_frame.categorical: KINDS}
        self.net = Trompt(channels, 3, prompts, layers, statistics(), self.names)

    def forward(self, numbers, kinds):
        table = torch_frame.TensorFrame(
            {torch_frame.numerical: numbers, torch_frame.categorical: kinds}, self.names
        )
        return self.net(table)


def get_inputs():
    return [torch.randn(16, 6), torch.randint(0, 5, (16, 2))]


def get_init_inputs():
    return [64, 32, 6]
