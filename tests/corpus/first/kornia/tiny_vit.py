"""Kornia's TinyViT: MBConvs, then windowed attention with a bias by offset."""

import torch
from kornia.models.tiny_vit import TinyViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = TinyViT(
            img_size=64,
            num_classes=10,
            embed_dims=(32, 64, 80, 96),
            depths=(2, 2, 2, 2),
            num_heads=(2, 2, 4, 4),
            window_sizes=(4, 4, 4, 2),
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(2, 3, 64, 64)]


def get_init_inputs():
    return []
