"""SAINT: attention over the columns of a row, then over the rows of the batch."""

import torch
from deeptab.architectures.saint import SAINT
from deeptab.configs import SAINTConfig


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        numbers = {f"n{i}": {"dimension": 1, "categories": None} for i in range(9)}
        categories = {f"c{i}": {"dimension": 1, "categories": 12} for i in range(5)}
        self.net = SAINT(
            (numbers, categories, {}),
            num_classes=2,
            config=SAINTConfig(d_model=width, n_layers=layers, n_heads=4),
        )

    def forward(self, numbers, categories):
        return self.net(
            list(numbers[..., None].unbind(1)), list(categories[..., None].unbind(1)), []
        )


def get_inputs():
    return [torch.randn(24, 9), torch.randint(0, 12, (24, 5))]


def get_init_inputs():
    return [64, 3]
