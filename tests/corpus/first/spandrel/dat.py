"""spandrel's DAT: attention over strips of space and over channels by turns."""

import torch
from spandrel.architectures.DAT import DAT


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DAT(
            img_size=16,
            embed_dim=32,
            split_size=[4, 8],
            depth=[4, 4],
            num_heads=[4, 4],
            expansion_factor=2.0,
            upscale=2,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 16, 16)]


def get_init_inputs():
    return []
