"""Neural collaborative filtering: matrix factorization beside a network."""

from types import SimpleNamespace

import torch
from collie.model import NeuralCollaborativeFiltering
from torch import nn


class Model(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        loader = SimpleNamespace(num_users=users, num_items=items, num_negative_samples=1)
        self.model = NeuralCollaborativeFiltering(train=loader, embedding_dim=8, num_layers=3)

    def forward(self, users, items):
        return self.model(users, items)


def get_inputs():
    return [torch.randint(0, 100, (16,)), torch.randint(0, 200, (16,))]


def get_init_inputs():
    return [100, 200]
