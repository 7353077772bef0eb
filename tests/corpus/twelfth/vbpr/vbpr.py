"""Visual Bayesian personalized ranking: latent and visual factors of users and items."""

import torch
from torch import nn
from vbpr import VBPR


class Model(nn.Module):
    def __init__(self, n_users, n_items):
        super().__init__()
        self.model = VBPR(n_users, n_items, torch.randn(n_items, 256), dim_gamma=20, dim_theta=20)

    def forward(self, user, positive, negative):
        return self.model(user, positive, negative)


def get_inputs():
    return [
        torch.randint(0, 100, (16,)),
        torch.randint(0, 200, (16,)),
        torch.randint(0, 200, (16,)),
    ]


def get_init_inputs():
    return [100, 200]
