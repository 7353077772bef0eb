"""timesformer-pytorch's divided attention over time and space, with rotary positions."""

import torch
from timesformer_pytorch import TimeSformer


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = TimeSformer(
            dim=64,
            image_size=32,
            patch_size=8,
            num_frames=4,
            num_classes=10,
            depth=2,
            heads=4,
            dim_head=16,
            shift_tokens=True,
        )

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(2, 4, 3, 32, 32)]


def get_init_inputs():
    return []
