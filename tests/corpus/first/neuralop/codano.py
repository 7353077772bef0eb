"""neuraloperator's CODANO: attention between physical variables, each a function."""

import torch
from neuralop.models import CODANO


class Model(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = CODANO(
            hidden_variable_codimension=hidden,
            lifting_channels=16,
            projection_channels=16,
            n_layers=2,
            n_modes=[[6, 6]] * 2,
            n_heads=[2, 2],
            per_layer_scaling_factors=[[1, 1]] * 2,
            attention_scaling_factors=[0.5, 0.5],
            enable_cls_token=False,
            domain_padding=0.25,
        )

    def forward(self, variables):
        return self.net(variables)


def get_inputs():
    return [torch.randn(1, 3, 24, 24)]


def get_init_inputs():
    return [8]
