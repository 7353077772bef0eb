"""LapFlow's diffusion transformer: patches of three scales of a Laplacian pyramid at once."""

import torch
from rectified_flow_pytorch import LapFlowDiT


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = LapFlowDiT(
            base_image_size=32,
            patch_size=4,
            dim=dim,
            depth=depth,
            heads=4,
            mlp_dim=4 * dim,
            num_scales=3,
            accept_cond=True,
            cond_as_labels=True,
            num_classes=10,
        )

    def forward(self, small, middle, large, times, label):
        return self.net([small, middle, large], times, cond=label)


def get_inputs():
    images = [torch.randn(2, 3, size, size) for size in (8, 16, 32)]
    return [*images, torch.rand(2), torch.randint(0, 10, (2,))]


def get_init_inputs():
    return [192, 4]
