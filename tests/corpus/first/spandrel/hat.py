"""spandrel's HAT: windows, overlapping windows and channel attention, four times the pixels."""

import torch
from spandrel.architectures.HAT import HAT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = HAT(
            img_size=16,
            embed_dim=32,
            depths=(2, 2),
            num_heads=(4, 4),
            window_size=8,
            compress_ratio=4,
            squeeze_factor=8,
            upscale=4,
            num_feat=24,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 16, 16)]


def get_init_inputs():
    return []
