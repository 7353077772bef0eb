"""Bidirectional cross attention transformer between two sequences."""

import torch
from bidirectional_cross_attention import BidirectionalCrossAttentionTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, context_dim, depth):
        super().__init__()
        self.model = BidirectionalCrossAttentionTransformer(
            dim=dim, depth=depth, context_dim=context_dim, heads=4, dim_head=32
        )

    def forward(self, video, audio, mask):
        return self.model(video, audio, mask=mask)


def get_inputs():
    return [torch.randn(1, 128, 128), torch.randn(1, 64, 96), torch.rand(1, 128) > 0.2]


def get_init_inputs():
    return [128, 96, 3]
