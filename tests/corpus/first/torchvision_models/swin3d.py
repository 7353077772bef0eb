"""torchvision's Swin transformer of video, windows shifted in three dimensions."""

import torch
from torchvision.models.video import SwinTransformer3d


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SwinTransformer3d(
            patch_size=[2, 4, 4],
            embed_dim=24,
            depths=[2, 2, 2],
            num_heads=[2, 2, 4],
            window_size=[4, 4, 4],
            num_classes=10,
        )

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(1, 3, 8, 64, 64)]


def get_init_inputs():
    return []
