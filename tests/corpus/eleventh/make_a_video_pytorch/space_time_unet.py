"""Make-A-Video: space-time U-Net on a video with a time step."""

import torch
from make_a_video_pytorch import SpaceTimeUnet
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SpaceTimeUnet(
            dim=16,
            channels=3,
            dim_mult=(1, 2, 4),
            resnet_block_depths=(1, 1, 2),
            temporal_compression=(False, False, True),
            self_attns=(False, False, True),
            condition_on_timestep=True,
            attn_dim_head=16,
            attn_heads=4,
        )

    def forward(self, video, time):
        return self.model(video, timestep=time)


def get_inputs():
    return [torch.randn(1, 3, 4, 32, 32), torch.tensor([3.0])]


def get_init_inputs():
    return []
