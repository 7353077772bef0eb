"""A stage of HaloNet: bottleneck blocks whose spatial mixing is attention over blocks of pixels
with a halo around each; the blocks are the wrapper's, the attention the package's."""

import torch
from halonet_pytorch import HaloAttention


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, dim, 7, stride=2, padding=3)
        self.attend = torch.nn.ModuleList(
            HaloAttention(dim=dim, block_size=8, halo_size=4, dim_head=32, heads=4)
            for _ in range(depth)
        )
        self.mix = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.BatchNorm2d(dim),
                torch.nn.Conv2d(dim, dim * 4, 1),
                torch.nn.SiLU(),
                torch.nn.Conv2d(dim * 4, dim, 1),
            )
            for _ in range(depth)
        )

    def forward(self, image):
        x = self.stem(image)
        for attend, mix in zip(self.attend, self.mix, strict=True):
            x = x + attend(x)
            x = x + mix(x)
        return x.mean((2, 3))


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [128, 4]
