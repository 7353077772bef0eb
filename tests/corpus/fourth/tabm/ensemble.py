"""TabM: one network that acts as 16 of them with multiplicative adapters; piecewise-linear
embeddings of the numbers, categories one-hot."""

import torch
from rtdl_num_embeddings import PiecewiseLinearEmbeddings
from tabm import TabM


class Model(torch.nn.Module):
    def __init__(self, numbers, categories, classes):
        super().__init__()
        edges = [torch.linspace(-2.5, 2.5, 13 + i % 4) for i in range(numbers)]
        self.net = TabM(
            n_num_features=numbers,
            cat_cardinalities=categories,
            d_out=classes,
            num_embeddings=PiecewiseLinearEmbeddings(edges, 16, activation=False, version="B"),
            k=16,
            n_blocks=3,
            d_block=256,
            dropout=0.1,
            arch_type="tabm",
            start_scaling_init="random-signs",
        )

    def forward(self, numbers, categories):
        return self.net(numbers, categories).softmax(dim=-1).mean(dim=1)


def get_inputs():
    categories = torch.stack([torch.randint(0, size, (32,)) for size in (3, 7, 12)], dim=1)
    return [torch.randn(32, 8), categories]


def get_init_inputs():
    return [8, [3, 7, 12], 4]
