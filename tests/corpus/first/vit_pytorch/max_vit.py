"""vit-pytorch's MaxViT: MBConv, attention in blocks, attention over a grid."""

import torch
from vit_pytorch.max_vit import MaxViT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = MaxViT(
            num_classes=10, dim_conv_stem=24, dim=32, dim_head=16, depth=(2, 2), window_size=4
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
