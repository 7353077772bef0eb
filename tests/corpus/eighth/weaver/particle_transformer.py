"""Particle Transformer for jets from weaver-core."""

import torch
from torch import nn
from weaver.nn.model.ParticleTransformer import ParticleTransformer


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.model = ParticleTransformer(
            features,
            num_classes=classes,
            pair_input_dim=4,
            embed_dims=(64, 128, 64),
            pair_embed_dims=(32, 32),
            num_heads=8,
            num_layers=4,
            num_cls_layers=2,
            trim=False,
        )

    def forward(self, x, v, mask):
        return self.model(x, v=v, mask=mask)


def get_inputs():
    momentum = torch.randn(4, 3, 30)
    energy = momentum.norm(dim=1, keepdim=True) + 0.1
    mask = torch.ones(4, 1, 30, dtype=torch.bool)
    mask[2:, :, 22:] = False
    return [torch.randn(4, 17, 30), torch.cat([momentum, energy], 1), mask]


def get_init_inputs():
    return [17, 10]
