"""Swin-T's depths and windows on a smaller picture: windows of 7 that move cyclically."""

import torch
from swin_transformer_pytorch import SwinTransformer


class Model(torch.nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.net = SwinTransformer(
            hidden_dim=hidden,
            layers=layers,
            heads=(3, 6, 12, 24),
            channels=3,
            num_classes=100,
            head_dim=32,
            window_size=7,
            downscaling_factors=(4, 2, 2, 2),
            relative_pos_embedding=True,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return [96, (2, 2, 6, 2)]
