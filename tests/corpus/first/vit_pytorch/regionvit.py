"""vit-pytorch's RegionViT: regional tokens beside local ones, four stages."""

import torch
from vit_pytorch.regionvit import RegionViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = RegionViT(
            dim=(32, 48, 64, 80), depth=(2, 2, 2, 2), window_size=2, num_classes=10, use_peg=True
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
