"""V-JEPA: video vision transformer."""

import torch
from torch import nn
from vjepa.models.vision_transformer import VisionTransformer


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = VisionTransformer(
            img_size=64,
            patch_size=16,
            num_frames=8,
            tubelet_size=2,
            embed_dim=192,
            depth=4,
            num_heads=3,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randn(1, 3, 8, 64, 64)]


def get_init_inputs():
    return []
