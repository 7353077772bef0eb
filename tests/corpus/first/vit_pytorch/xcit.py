"""vit-pytorch's XCiT: attention between channels, then class attention."""

import torch
from vit_pytorch.xcit import XCiT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = XCiT(
            image_size=64,
            patch_size=8,
            num_classes=10,
            dim=64,
            depth=3,
            cls_depth=2,
            heads=4,
            dim_head=16,
            mlp_dim=128,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return []
