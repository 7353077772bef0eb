"""vit-pytorch's NaViT: images of different sizes packed into one sequence."""

import torch
from vit_pytorch.na_vit import NaViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = NaViT(
            image_size=64,
            patch_size=8,
            num_classes=10,
            dim=64,
            depth=2,
            heads=4,
            dim_head=16,
            mlp_dim=128,
        )

    def forward(self, wide, tall, small):
        return self.net([[wide, tall], [small]])


def get_inputs():
    return [torch.randn(3, 32, 64), torch.randn(3, 64, 24), torch.randn(3, 32, 32)]


def get_init_inputs():
    return []
